import { inflate } from './inflate.js';

// The build writes what these stand for: the module as base64 of its deflated bytes.
const DEFLATED = '@deflated@';
const LENGTH = Number('@length@');

let compiled;

/** Returns the WebAssembly module, which the first call compiles. */
export function compiledModule() {
  compiled ??= new WebAssembly.Module(inflate(bytesOfBase64(DEFLATED), LENGTH));
  return compiled;
}

function bytesOfBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
