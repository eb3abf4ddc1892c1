'use strict';
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { Router } = require('../src/router.js');
const { escape, lookup, render, listing } = require('../src/template.js');
const { Cache, once } = require('../src/cache.js');
const { published, tags, excerpt, slug, toXml } = require('../src/feed.js');

test('routes more', () => {
  const router = new Router()
    .add('get', '/a/:x/b/:y', 1)
    .add('GET', '/a/c', 2)
    .add('put', '/a/c', 3)
    .add('get', '/d/*', 4)
    .add('post', '/', 5);
  assert.deepEqual(router.find('get', '/a/1/b/2'), { status: 200, handler: 1, params: { x: '1', y: '2' } });
  assert.equal(router.find('get', '/a/1/b').status, 404);
  assert.equal(router.find('get', '/a').status, 404);
  assert.equal(router.find('get', '/b/c').status, 404);
  assert.equal(router.find('put', 'a/c?x=/y').handler, 3);
  assert.deepEqual(router.find('delete', '/a/c'), { status: 405, allow: 'GET, PUT' });
  assert.deepEqual(router.find('get', '/d/x/y/z').params, { rest: 'x/y/z' });
  assert.deepEqual(router.find('get', '/d').params, { rest: '' });
  assert.deepEqual(router.find('get', '/'), { status: 405, allow: 'POST' });
  assert.equal(router.find('get', '/a/%2F/b/%3F').params.x, '/');
});

test('templates more', () => {
  assert.equal(escape(5), '5');
  assert.equal(escape('a"b"<'), 'a&quot;b&quot;&lt;');
  assert.equal(lookup({ a: { b: { c: 0 } } }, 'a.b.c'), 0);
  assert.equal(lookup({}, 'a.b.c'), undefined);
  assert.equal(lookup({ a: null }, 'a'), null);
  assert.equal(lookup({ a: { b: null } }, 'a.b.c'), undefined);
  assert.equal(render('{{a.b|none}}', { a: null }), 'none');
  assert.equal(render('{{a}}{{b}}', { a: 1, b: 2 }), '12');
  assert.equal(render('x {{{a}}}{{a}} y', { a: '&' }), 'x &&amp; y');
  assert.equal(render('{{ a | no }}', {}), ' no');
  assert.equal(render('{{a|x}}', { a: '' }), '');
  assert.equal(render('{{a|x}}', { a: false }), 'false');
  assert.equal(render('', {}), '');
  assert.throws(() => render('{{{a}}', { a: 1 }), /unclosed tag at 0/);
  assert.equal(listing(['a']), 'a');
  assert.equal(listing(['a', 'b', 'c', 'd']), 'a, b, c and d');
});

test('cache more', () => {
  let time = 0;
  const cache = new Cache(3, { ttl: 5, now: () => time });
  for (const key of ['a', 'b', 'c']) cache.set(key, key);
  cache.set('a', 'A');
  cache.set('d', 'd');
  assert.deepEqual([...cache.entries.keys()], ['c', 'a', 'd']);
  time = 3;
  cache.set('c', 'C');
  time = 5;
  assert.equal(cache.get('a'), undefined);
  assert.equal(cache.get('c'), 'C');
  assert.equal(cache.get('nothing'), undefined);
  assert.equal(cache.rate(), 33);
  assert.equal(cache.entries.has('a'), false);
  time = 8;
  assert.equal(cache.get('c'), undefined);
  const recent = new Cache(3);
  for (const key of ['a', 'b', 'c']) recent.set(key, key);
  recent.get('b');
  recent.get('a');
  recent.set('d', 'd');
  assert.deepEqual([...recent.entries.keys()], ['b', 'a', 'd']);
  const one = new Cache(1);
  one.set('x', 1);
  one.set('y', 2);
  assert.deepEqual([...one.entries.keys()], ['y']);
  assert.equal(one.get('y'), 2);
  assert.equal(one.rate(), 100);
});

test('once more', async () => {
  let calls = 0;
  const load = once(async () => {
    calls += 1;
    if (calls === 1) throw new Error('down');
    return calls;
  });
  await assert.rejects(load('k'));
  assert.equal(await load('k'), 2);
  assert.equal(await load('k'), 3);
});

test('feed more', () => {
  const posts = [
    { title: 'a', date: '2020-01-02', pinned: true },
    { title: 'b', date: '2020-01-03', pinned: true, tags: ['x'] },
    { title: 'c', date: '2020-01-04', pinned: false, tags: ['y', 'x', 'y'] },
    { title: 'd', date: '2020-01-05', draft: true, tags: ['z'] },
  ];
  assert.deepEqual(published(posts, '2020-01-05').map((post) => post.title), ['b', 'a', 'c']);
  assert.deepEqual(published(posts, '2020-01-02').map((post) => post.title), ['a']);
  assert.deepEqual(published([], '2020'), []);
  assert.deepEqual(tags(posts), [['x', 2], ['y', 1], ['z', 1]]);
  assert.deepEqual(tags([]), []);
  assert.equal(excerpt('one two', 7), 'one two');
  assert.equal(excerpt('one two three', 7), 'one two...');
  assert.equal(excerpt('one two three', 6), 'one...');
  assert.equal(excerpt('one two three', 3), 'one...');
  assert.equal(slug('  --Ångström & Co.  '), 'ngstr-m-co');
  const taken = new Set(['x', 'x-2']);
  assert.equal(slug('X', taken), 'x-3');
  assert.equal(slug('X', taken), 'x-4');
  assert.equal(toXml([], 's'), '<rss><channel></channel></rss>');
  assert.match(toXml([{ title: '<', slug: 'q' }, { title: 'b', slug: 'r' }], 's'), /&lt;.*s\/q.*s\/r/);
});
