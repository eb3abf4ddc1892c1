import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Recent, reach, reduced } from '../src/queue.js';

test('queue 1', () => {
  const recent = new Recent(2).use('a').use('b').use('a');
  assert.deepEqual(recent.list(), ['a', 'b']);
  recent.use('c');
  assert.deepEqual(recent.list(), ['c', 'a']);
});

test('queue 2', () => {
  const recent = new Recent(3).use('x');
  recent.list().push('y');
  assert.deepEqual(recent.list(), ['x']);
  recent.use('x');
  assert.deepEqual(recent.list(), ['x']);
});

test('queue 3', () => {
  const friends = { ann: ['bob', 'cid'], bob: ['dan'], cid: ['ann', 'dan'] };
  assert.deepEqual(reach(friends, 'ann'), ['ann', 'bob', 'cid', 'dan']);
});

test('queue 4', () => {
  assert.deepEqual(reduced([200, 50], 10), [180, 45]);
});
