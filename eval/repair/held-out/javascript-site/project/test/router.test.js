'use strict';
const { test, describe } = require('node:test');
const assert = require('node:assert/strict');
const { Router } = require('../src/router.js');

const router = () =>
  new Router()
    .add('get', '/', 'home')
    .add('get', '/posts/:id', 'post')
    .add('delete', '/posts/:id', 'remove')
    .add('post', '/posts', 'create')
    .add('get', '/files/*', 'files');

describe('routes', () => {
  test('fixed paths and the root', () => {
    assert.equal(router().find('GET', '/').handler, 'home');
    assert.equal(router().find('POST', '/posts/').handler, 'create');
  });

  test('parameters are decoded', () => {
    assert.deepEqual(router().find('GET', '/posts/a%20b').params, { id: 'a b' });
  });

  test('a longer path does not match', () => {
    assert.equal(router().find('GET', '/posts/1/edit').status, 404);
  });

  test('the rest of a path', () => {
    assert.deepEqual(router().find('GET', '/files/a/b.txt').params, { rest: 'a/b.txt' });
    assert.equal(router().find('GET', '/files').status, 200);
  });

  test('the query is not part of the path', () => {
    assert.deepEqual(router().find('GET', '/posts/7?full=1').params, { id: '7' });
  });

  test('another method is not allowed', () => {
    assert.deepEqual(router().find('PUT', '/posts/1'), { status: 405, allow: 'DELETE, GET' });
  });
});
