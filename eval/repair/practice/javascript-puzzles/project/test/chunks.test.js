import { test } from 'node:test';
import assert from 'node:assert/strict';
import { chunk, flat, merge } from '../src/chunks.js';

test('chunks 1', () => {
  assert.deepEqual(chunk([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
});

test('chunks 2', () => {
  assert.deepEqual(merge([1, 4], [2, 3, 9]), [1, 2, 3, 4, 9]);
  assert.deepEqual(merge([], [1]), [1]);
  assert.deepEqual(merge([3], []), [3]);
});

test('chunks 3', () => {
  assert.deepEqual(flat([1, [2, [3]], 4]), [1, 2, 3, 4]);
});
