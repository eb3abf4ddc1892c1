import { test } from 'node:test';
import assert from 'node:assert/strict';
import { chunk, flat, merge } from '../src/chunks.js';

test('hidden chunks 1', () => {
  assert.deepEqual(chunk([1, 2, 3], 3), [[1, 2, 3]]);
  assert.deepEqual(chunk([1, 2, 3, 4], 3), [[1, 2, 3], [4]]);
  assert.deepEqual(merge([5, 6], [1, 2]), [1, 2, 5, 6]);
  assert.deepEqual(merge([1, 3, 5], [2, 4, 8, 9]), [1, 2, 3, 4, 5, 8, 9]);
  assert.deepEqual(flat([[[[7]]], []]), [7]);
  assert.deepEqual(flat([[1, 2], 3]), [1, 2, 3]);
});
