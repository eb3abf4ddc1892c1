import { test } from 'node:test';
import assert from 'node:assert/strict';
import { fewest, median, primes, root, transpose } from '../src/maths.js';

test('hidden maths 1', () => {
  assert.equal(root(9875), 2);
  assert.equal(root(10), 1);
  assert.deepEqual(primes(3), [2]);
  assert.deepEqual(primes(20), [2, 3, 5, 7, 11, 13, 17, 19]);
  assert.deepEqual(transpose([[1], [2]]), [[1, 2]]);
  assert.equal(fewest([1, 3, 4], 6), 2);
  assert.equal(fewest([7], 7), 1);
  assert.equal(fewest([4], 6), -1);
  const kept = [5, 100, 20];
  assert.equal(median(kept), 20);
  assert.deepEqual(kept, [5, 100, 20]);
  assert.equal(median([4, 2]), 3);
  assert.equal(median([9, 100, 10]), 10);
});
