export { FormatError } from './errors.js';
export { Filter } from './filter.js';
export { bestPractices, capacityForBytes, expectedFpr, parameters } from './parameters.js';
