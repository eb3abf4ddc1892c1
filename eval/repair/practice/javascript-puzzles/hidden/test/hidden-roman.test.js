import { test } from 'node:test';
import assert from 'node:assert/strict';
import { arabic, roman } from '../src/roman.js';

test('hidden roman 1', () => {
  assert.equal(roman(1994), 'MCMXCIV');
  assert.equal(roman(88), 'LXXXVIII');
  assert.equal(arabic('XL'), 40);
  assert.equal(arabic('CCC'), 300);
  assert.equal(arabic('VI'), 6);
});
