import { test } from 'node:test';
import assert from 'node:assert/strict';
import { anagram, group, lonely, tally } from '../src/counts.js';

test('hidden counts 1', () => {
  assert.equal(tally([]).size, 0);
  assert.equal(tally(['x', 'x', 'x']).get('x'), 3);
  assert.equal(anagram('Dormitory', 'dirtyroom'), true);
  assert.equal(anagram('aab', 'abb'), false);
  assert.equal(lonely(['z', 'y', 'z']), 'y');
  assert.deepEqual(group(['ab', 'c', 'de'], (w) => w.length), { 1: ['c'], 2: ['ab', 'de'] });
});
