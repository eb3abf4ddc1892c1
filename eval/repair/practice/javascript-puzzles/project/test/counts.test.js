import { test } from 'node:test';
import assert from 'node:assert/strict';
import { anagram, group, lonely, tally } from '../src/counts.js';

test('counts 1', () => {
  assert.equal(tally(['a', 'b', 'a']).get('a'), 2);
  assert.equal(tally(['a', 'b', 'a']).get('b'), 1);
});

test('counts 2', () => {
  assert.equal(anagram('Listen', 'silent'), true);
  assert.equal(anagram('abc', 'abd'), false);
});

test('counts 3', () => {
  assert.equal(lonely([4, 5, 4, 6]), 5);
  assert.equal(lonely([1, 1]), undefined);
});

test('counts 4', () => {
  assert.deepEqual(group([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even')), { odd: [1, 3], even: [2] });
});
