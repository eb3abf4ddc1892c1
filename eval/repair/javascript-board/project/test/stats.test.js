import { test } from 'node:test';
import assert from 'node:assert/strict';
import { histogram, mean, median, movingAverage, streak, top } from '../src/stats.js';

test('mean', () => {
  assert.equal(mean([2, 4, 9]), 5);
  assert.equal(mean([]), 0);
});

test('median of odd and even', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([10, 2, 4, 8]), 6);
});

test('median leaves its input alone', () => {
  const values = [3, 1, 2];
  median(values);
  assert.deepEqual(values, [3, 1, 2]);
});

test('streaks', () => {
  assert.equal(streak([5, 1, 2, 3, 9, 8]), 3);
  assert.equal(streak([]), 0);
  assert.equal(streak([4, 4, 5]), 2);
});

test('histogram', () => {
  assert.deepEqual(histogram([1, 5, 12, 19, 10], 10), { 0: 2, 10: 3 });
});

test('moving average', () => {
  assert.deepEqual(movingAverage([1, 2, 3, 4], 2), [1.5, 2.5, 3.5]);
});

test('top names', () => {
  assert.deepEqual(top({ a: 1, b: 5, c: 3 }, 2), ['b', 'c']);
});
