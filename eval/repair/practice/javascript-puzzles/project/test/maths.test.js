import { test } from 'node:test';
import assert from 'node:assert/strict';
import { fewest, median, primes, root, transpose } from '../src/maths.js';

test('maths 1', () => {
  assert.equal(root(38), 2);
  assert.equal(root(7), 7);
  assert.equal(root(10), 1);
});

test('maths 2', () => {
  assert.deepEqual(primes(12), [2, 3, 5, 7, 11]);
});

test('maths 3', () => {
  assert.deepEqual(transpose([[1, 2, 3], [4, 5, 6]]), [[1, 4], [2, 5], [3, 6]]);
});

test('maths 4', () => {
  assert.equal(fewest([1, 5, 10], 12), 3);
  assert.equal(fewest([5], 3), -1);
  assert.equal(fewest([2, 5], 10), 2);
});

test('maths 5', () => {
  const numbers = [10, 9, 1];
  assert.equal(median(numbers), 9);
  assert.deepEqual(numbers, [10, 9, 1]);
  assert.equal(median([1, 2, 3, 10]), 2.5);
});
