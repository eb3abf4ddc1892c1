'use strict';
const { test } = require('node:test');
const assert = require('node:assert/strict');
const { escape, lookup, render, listing } = require('../src/template.js');

test('text is escaped', () => {
  assert.equal(escape('<a href="x">&</a>'), '&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;');
});

test('dotted paths', () => {
  assert.equal(lookup({ a: { b: 3 } }, 'a.b'), 3);
  assert.equal(lookup({ a: null }, 'a.b'), undefined);
});

test('tags are filled and escaped', () => {
  assert.equal(render('Hello {{ user.name }}!', { user: { name: '<Ann>' } }), 'Hello &lt;Ann&gt;!');
});

test('raw tags are left as they are', () => {
  assert.equal(render('{{{html}}} end', { html: '<b>' }), '<b> end');
});

test('fallbacks stand in for what is missing only', () => {
  assert.equal(render('{{a|none}} {{b|none}}', { a: 0 }), '0 none');
  assert.equal(render('[{{missing}}]', {}), '[]');
});

test('an open tag is an error', () => {
  assert.throws(() => render('a {{b', {}), /unclosed/);
});

test('listings', () => {
  assert.equal(listing(['a', 'b', 'c']), 'a, b and c');
  assert.equal(listing(['a', 'b']), 'a and b');
  assert.equal(listing([]), '');
});
