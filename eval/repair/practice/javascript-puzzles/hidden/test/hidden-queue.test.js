import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Recent, reach, reduced } from '../src/queue.js';

test('hidden queue 1', () => {
  const recent = new Recent(2).use(1).use(2).use(3);
  assert.deepEqual(recent.list(), [3, 2]);
  recent.list().pop();
  assert.deepEqual(recent.use(3).list(), [3, 2]);
  assert.deepEqual(recent.use(2).list(), [2, 3]);
  assert.deepEqual(reach({ a: ['b', 'c'], b: ['d'], d: ['a'] }, 'a'), ['a', 'b', 'c', 'd']);
  assert.deepEqual(reach({}, 'q'), ['q']);
  assert.deepEqual(reach({ a: ['b', 'c'], b: ['d'], c: ['d'] }, 'a'), ['a', 'b', 'c', 'd']);
  assert.deepEqual(reduced([300], 25), [225]);
  assert.deepEqual(reduced([80, 10], 100), [0, 0]);
});
