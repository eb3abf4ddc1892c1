import { test } from 'node:test';
import assert from 'node:assert/strict';
import { depth, has, inOrder, insert } from '../src/tree.js';

test('tree 1', () => {
  const tree = [5, 2, 8, 1].reduce(insert, null);
  assert.deepEqual(inOrder(tree), [1, 2, 5, 8]);
});

test('tree 2', () => {
  const tree = [5, 2, 8, 9, 7].reduce(insert, null);
  assert.equal(depth(tree), 3);
  assert.equal(depth(null), 0);
});

test('tree 3', () => {
  const tree = [5, 2, 8].reduce(insert, null);
  assert.equal(has(tree, 8), true);
  assert.equal(has(tree, 2), true);
  assert.equal(has(tree, 3), false);
});
