import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { paginate, parse, search, tokenize } from '../src/query.js';
import { Task } from '../src/tasks.js';

const tasks = [
  new Task(1, 'Buy Milk', { priority: 1, labels: ['home'] }),
  new Task(2, 'Milk run report', { priority: 2, labels: ['work'] }),
  new Task(3, 'Sleep', { priority: 3, labels: ['home'] }),
];
const ids = (text) => search(tasks, text).map((task) => task.id);

describe('query', () => {
  it('splits words and keeps quotes together', () => {
    assert.deepEqual(tokenize('a "b c"  d'), ['a', 'b c', 'd']);
  });

  it('parses terms', () => {
    assert.deepEqual(parse('-label:home')[0], { kind: 'field', field: 'label', value: 'home', negated: true });
    assert.deepEqual(parse('priority<=2')[0], { kind: 'compare', field: 'priority', op: '<=', value: 2, negated: false });
  });

  it('finds words in any case', () => {
    assert.deepEqual(ids('MILK'), [1, 2]);
  });

  it('combines terms', () => {
    assert.deepEqual(ids('milk label:work'), [2]);
    assert.deepEqual(ids('label:home -milk'), [3]);
    assert.deepEqual(ids('priority<2'), [1]);
    assert.deepEqual(ids('priority>=2'), [2, 3]);
    assert.deepEqual(ids('priority<=2 -label:work'), [1]);
  });

  it('finds nothing among the done', () => {
    assert.deepEqual(ids('done'), []);
    assert.deepEqual(ids(''), [1, 2, 3]);
  });
});

describe('pages', () => {
  it('cuts a list', () => {
    assert.deepEqual(paginate([1, 2, 3, 4, 5], 2, 2), { items: [3, 4], page: 2, pages: 3 });
    assert.deepEqual(paginate([1, 2, 3, 4, 5], 9, 2), { items: [5], page: 3, pages: 3 });
    assert.deepEqual(paginate([], 1, 2), { items: [], page: 1, pages: 0 });
  });
});
