import { test } from 'node:test';
import assert from 'node:assert/strict';
import { daysIn, isLeap, relative, toDays, weekday, workdays } from '../src/dates.js';
import { Board, Task } from '../src/tasks.js';
import { paginate, parse, search, tokenize } from '../src/query.js';
import { histogram, mean, median, movingAverage, streak, top } from '../src/stats.js';

test('hidden dates', () => {
  assert.deepEqual([2100, 2400, 2023, 1996].map(isLeap), [false, true, false, true]);
  assert.deepEqual([1, 4, 11].map((month) => daysIn(2001, month)), [31, 30, 30]);
  assert.throws(() => daysIn(2001, -1), RangeError);
  assert.equal(toDays('1972-12-31'), 1095);
  assert.equal(toDays('1973-01-01'), 1096);
  assert.equal(toDays('2024-02-29'), 19782);
});

test('hidden weekdays', () => {
  assert.deepEqual([1, 2, 3, 10, 11].map(weekday), [4, 5, 6, 6, 0]);
  assert.equal(workdays(0, 13), 10);
  assert.equal(workdays(5, 4), 0);
  assert.equal(workdays(7, 9), 2);
});

test('hidden relative', () => {
  assert.deepEqual([[4, 5], [3, 5], [7, 5], [-5, 5]].map(([a, b]) => relative(a, b)), ['yesterday', '2 days ago', 'in 2 days', '10 days ago']);
});

test('hidden board order', () => {
  const made = new Board();
  for (const [id, priority, due] of [[5, 2, 9], [4, 2, 9], [3, 2, null], [2, 2, 3], [1, 9, 1]]) made.add(new Task(id, `t${id}`, { priority, due }));
  const seen = [];
  while (made.next()) {
    seen.push(made.next().id);
    made.finish(made.next().id);
  }
  assert.deepEqual(seen, [2, 4, 5, 3, 1]);
  assert.equal(made.progress(), 100);
});

test('hidden board states', () => {
  const made = new Board();
  made.add(new Task(1, 'a', { after: [7] })).add(new Task(2, 'b', { after: [1], due: 0 }));
  assert.equal(made.isReady(made.get(1)), true);
  assert.equal(made.isReady(made.get(2)), false);
  assert.equal(made.get(42), null);
  assert.deepEqual(made.overdue(1), [2]);
  assert.deepEqual(made.overdue(0), []);
  assert.equal(made.finish(1), true);
  assert.equal(made.progress(), 50);
  assert.deepEqual(made.open().map((task) => task.id), [2]);
  made.finish(2);
  assert.deepEqual(made.overdue(9), []);
  assert.throws(() => made.add(new Task(2, 'x')));
  assert.equal(made.tasks.size, 2);
});

test('hidden edges', () => {
  const made = new Board();
  assert.equal(made.next(), null);
  assert.equal(made.progress(), 0);
  made.add(new Task(1, 'a', { after: [2] }));
  assert.equal(made.next().id, 1);
  assert.equal(made.finish(1), true);
  assert.equal(made.finish(1), false);
  assert.equal(made.next(), null);
  assert.equal(mean([]), 0);
  assert.equal(mean([0, 0]), 0);
});

test('hidden plans', () => {
  const made = new Board();
  made.add(new Task('a', 'a', { after: ['b', 'c'] })).add(new Task('b', 'b', { after: ['c'] })).add(new Task('c', 'c'));
  assert.deepEqual(made.plan(), ['c', 'b', 'a']);
  made.add(new Task('d', 'd', { after: ['d'] }));
  assert.equal(made.plan(), null);
  assert.deepEqual(made.byLabel(), {});
});

test('hidden query', () => {
  assert.deepEqual(tokenize('  x  "y z" w'), ['x', 'y z', 'w']);
  assert.deepEqual(tokenize(''), []);
  assert.deepEqual(parse('a:b:c')[0], { kind: 'field', field: 'a', value: 'b:c', negated: false });
  assert.deepEqual(parse(':x')[0], { kind: 'word', value: ':x', negated: false });
  const tasks = [new Task(1, 'One', { priority: 1, labels: ['l'] }), new Task(2, 'Two', { priority: 2 }), new Task(3, 'Three', { priority: 3 })];
  tasks[2].done = true;
  const ids = (text) => search(tasks, text).map((task) => task.id);
  assert.deepEqual([ids('priority>1'), ids('priority>=1'), ids('priority<3'), ids('priority<=3')], [[2, 3], [1, 2, 3], [1, 2], [1, 2, 3]]);
  assert.deepEqual([ids('done'), ids('-done'), ids('-priority>1'), ids('-label:l'), ids('id:2'), ids('t'), ids('T -e')], [[3], [1, 2], [1], [2, 3], [2], [2, 3], [2]]);
});

test('hidden pages', () => {
  assert.deepEqual(paginate([1, 2, 3, 4], 2, 2), { items: [3, 4], page: 2, pages: 2 });
  assert.deepEqual(paginate([1, 2, 3], 0, 2), { items: [1, 2], page: 1, pages: 2 });
  assert.deepEqual(paginate([1, 2, 3], -4, 5), { items: [1, 2, 3], page: 1, pages: 1 });
  assert.deepEqual(paginate([], 3, 5), { items: [], page: 1, pages: 0 });
});

test('hidden stats', () => {
  assert.equal(mean([5]), 5);
  assert.equal(mean([1, 2]), 1.5);
  assert.deepEqual([median([]), median([7]), median([1, 2]), median([100, 20, 3])], [0, 7, 1.5, 20]);
  const input = [10, 9, 1];
  assert.equal(median(input), 9);
  assert.deepEqual(input, [10, 9, 1]);
});

test('hidden streaks', () => {
  assert.deepEqual([streak([1]), streak([1, 3, 5]), streak([10, 9, 8, 11]), streak([0, 1, 0]), streak([-1, 0, 1, 5, 6])], [1, 1, 4, 2, 3]);
});

test('hidden histogram', () => {
  assert.deepEqual(histogram([0, 4, 5, 14], 5), { 0: 2, 5: 1, 10: 1 });
  assert.deepEqual(histogram([], 5), {});
  assert.deepEqual(movingAverage([3, 5], 2), [4]);
  assert.deepEqual(movingAverage([3], 2), []);
  assert.deepEqual(movingAverage([1, 2, 6], 3), [3]);
  assert.deepEqual(top({ z: 2, a: 2, m: 9, q: 1 }, 3), ['m', 'a', 'z']);
  assert.deepEqual(top({ a: 1 }, 5), ['a']);
});
