import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { Board, Task } from '../src/tasks.js';

const board = () =>
  new Board()
    .add(new Task(1, 'Buy milk', { priority: 2, labels: ['home', 'shop'] }))
    .add(new Task(2, 'Write report', { priority: 1, due: 20, labels: ['work'], after: [3] }))
    .add(new Task(3, 'Collect data', { priority: 2, due: 10, labels: ['work'] }));

describe('board', () => {
  it('refuses the same id twice', () => {
    assert.throws(() => board().add(new Task(1, 'again')), /duplicate/);
  });

  it('says what comes next', () => {
    const made = board();
    assert.equal(made.next().id, 3);
    made.finish(3);
    assert.equal(made.next().id, 2);
  });

  it('has nothing to do when all is done', () => {
    assert.equal(new Board().next(), null);
  });

  it('does not finish what waits', () => {
    const made = board();
    assert.equal(made.finish(2), false);
    assert.equal(made.finish(3), true);
    assert.equal(made.finish(3), false);
    assert.equal(made.finish(2), true);
    assert.equal(made.finish(99), false);
  });

  it('lists what is open', () => {
    const made = board();
    made.finish(1);
    assert.deepEqual(made.open().map((task) => task.id), [2, 3]);
  });

  it('shows progress in percent', () => {
    const made = board();
    assert.equal(made.progress(), 0);
    made.finish(1);
    assert.equal(made.progress(), 33);
    assert.equal(new Board().progress(), 0);
  });

  it('groups by label', () => {
    assert.deepEqual(board().byLabel(), { home: [1], shop: [1], work: [2, 3] });
  });

  it('knows what is overdue', () => {
    const made = board();
    assert.deepEqual(made.overdue(10), []);
    assert.deepEqual(made.overdue(11), [3]);
    made.finish(3);
    assert.deepEqual(made.overdue(30), [2]);
  });

  it('plans around dependencies', () => {
    assert.deepEqual(board().plan(), [1, 3, 2]);
  });

  it('finds circles', () => {
    const made = board();
    made.get(3).after.push(2);
    assert.equal(made.plan(), null);
  });
});
