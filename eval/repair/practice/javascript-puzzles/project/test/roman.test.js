import { test } from 'node:test';
import assert from 'node:assert/strict';
import { arabic, roman } from '../src/roman.js';

test('roman 1', () => {
  assert.equal(roman(14), 'XIV');
  assert.equal(roman(3), 'III');
  assert.equal(roman(1000), 'M');
});

test('roman 2', () => {
  assert.equal(arabic('XIV'), 14);
  assert.equal(arabic('MCMXC'), 1990);
  assert.equal(arabic('II'), 2);
  assert.equal(arabic('LXI'), 61);
});
