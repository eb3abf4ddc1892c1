'use strict';
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { Cache, once } = require('../src/cache.js');

test('the least recently used entry goes', () => {
  const cache = new Cache(2);
  cache.set('a', 1);
  cache.set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  assert.equal(cache.get('b'), undefined);
  assert.equal(cache.get('a'), 1);
  assert.equal(cache.get('c'), 3);
});

test('entries grow too old', () => {
  let time = 0;
  const cache = new Cache(5, { ttl: 10, now: () => time });
  cache.set('a', 1);
  time = 9;
  assert.equal(cache.get('a'), 1);
  time = 10;
  assert.equal(cache.get('a'), undefined);
  assert.equal(cache.entries.size, 0);
});

test('the rate of hits', () => {
  const cache = new Cache(5);
  assert.equal(cache.rate(), 0);
  cache.set('a', 1);
  cache.get('a');
  cache.get('a');
  cache.get('b');
  assert.equal(cache.rate(), 67);
});

test('one load at a time for each key', async () => {
  let calls = 0;
  const load = once(async (key) => {
    calls += 1;
    return `${key}${calls}`;
  });
  assert.deepEqual(await Promise.all([load('x'), load('x'), load('y')]), ['x1', 'x1', 'y2']);
  assert.equal(await load('x'), 'x3');
});
