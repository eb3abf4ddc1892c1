import { test } from 'node:test';
import assert from 'node:assert/strict';
import { longest, palindrome, shorten, snake, title } from '../src/texts.js';

test('hidden texts 1', () => {
  assert.equal(palindrome('A man, a plan'), false);
  assert.equal(palindrome('No lemon, no melon'), true);
  assert.equal(title('x yy'), 'X Yy');
  assert.equal(shorten('hello world', 8), 'hello...');
  assert.equal(shorten('abc', 3), 'abc');
  assert.equal(longest('one four five z'), 'four');
  assert.equal(snake('aBcD'), 'a_bc_d');
});
