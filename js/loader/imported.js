import imported from './pg_bloom.wasm';

/** Returns the WebAssembly module, which the host has compiled. */
export function compiledModule() {
  return imported;
}
