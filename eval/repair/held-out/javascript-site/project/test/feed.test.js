'use strict';
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { published, tags, excerpt, slug, toXml } = require('../src/feed.js');

const POSTS = [
  { title: 'Old', date: '2024-01-01', tags: ['a', 'b'] },
  { title: 'Pinned', date: '2023-05-01', pinned: true, tags: ['b'] },
  { title: 'New', date: '2024-03-01', tags: ['b', 'b', 'c'] },
  { title: 'Draft', date: '2024-02-01', draft: true },
  { title: 'Future', date: '2025-01-01' },
];

test('what is out, newest first, pinned before', () => {
  assert.deepEqual(published(POSTS, '2024-03-01').map((post) => post.title), ['Pinned', 'New', 'Old']);
});

test('tags are counted once a post', () => {
  assert.deepEqual(tags(POSTS), [['b', 3], ['a', 1], ['c', 1]]);
});

test('excerpts end between words', () => {
  assert.equal(excerpt('short', 10), 'short');
  assert.equal(excerpt('some longer text', 11), 'some longer...');
  assert.equal(excerpt('some longer text', 9), 'some...');
  assert.equal(excerpt('unbreakable', 5), 'unbre...');
});

test('slugs', () => {
  const taken = new Set();
  assert.equal(slug('Hello, World!', taken), 'hello-world');
  assert.equal(slug('Hello World', taken), 'hello-world-2');
  assert.equal(slug('hello world?', taken), 'hello-world-3');
});

test('xml', () => {
  assert.equal(
    toXml([{ title: 'A & B', slug: 'a-b' }], 'http://x'),
    '<rss><channel><item><title>A &amp; B</title><link>http://x/a-b</link></item></channel></rss>',
  );
});
