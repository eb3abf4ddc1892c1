import { test } from 'node:test';
import assert from 'node:assert/strict';
import { depth, has, inOrder, insert } from '../src/tree.js';

test('hidden tree 1', () => {
  const tree = [4, 1, 3, 2, 6, 9, 8].reduce(insert, null);
  assert.deepEqual(inOrder(tree), [1, 2, 3, 4, 6, 8, 9]);
  assert.equal(depth(tree), 4);
  assert.equal(has(tree, 9), true);
  assert.equal(has(tree, 3), true);
  assert.equal(has(null, 3), false);
});
