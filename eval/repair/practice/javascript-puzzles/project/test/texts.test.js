import { test } from 'node:test';
import assert from 'node:assert/strict';
import { longest, palindrome, shorten, snake, title } from '../src/texts.js';

test('texts 1', () => {
  assert.equal(palindrome('Anna'), true);
  assert.equal(palindrome('ab'), false);
});

test('texts 2', () => {
  assert.equal(title('big old house'), 'Big Old House');
});

test('texts 3', () => {
  assert.equal(shorten('abcdef', 6), 'abcdef');
  assert.equal(shorten('abcdefgh', 6), 'abc...');
});

test('texts 4', () => {
  assert.equal(longest('zz a three seven'), 'three');
});

test('texts 5', () => {
  assert.equal(snake('userFirstName'), 'user_first_name');
});
