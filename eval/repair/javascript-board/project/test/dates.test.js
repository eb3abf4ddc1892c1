import { test } from 'node:test';
import assert from 'node:assert/strict';
import { daysIn, isLeap, relative, toDays, weekday, workdays } from '../src/dates.js';

test('leap years', () => {
  assert.equal(isLeap(2024), true);
  assert.equal(isLeap(1900), false);
  assert.equal(isLeap(2000), true);
});

test('days in a month', () => {
  assert.equal(daysIn(2023, 2), 28);
  assert.equal(daysIn(2024, 2), 29);
  assert.equal(daysIn(2024, 12), 31);
  assert.throws(() => daysIn(2024, 13), RangeError);
  assert.throws(() => daysIn(2024, 0), RangeError);
});

test('days since 1970', () => {
  assert.equal(toDays('1970-01-01'), 0);
  assert.equal(toDays('1970-02-01'), 31);
  assert.equal(toDays('2000-03-01'), 11017);
});

test('weekdays', () => {
  assert.equal(weekday(0), 3);
  assert.equal(weekday(4), 0);
});

test('workdays count both ends', () => {
  assert.equal(workdays(4, 10), 5);
  assert.equal(workdays(8, 8), 1);
  assert.equal(workdays(9, 10), 0);
});

test('relative dates', () => {
  assert.equal(relative(5, 5), 'today');
  assert.equal(relative(6, 5), 'tomorrow');
  assert.equal(relative(9, 5), 'in 4 days');
  assert.equal(relative(1, 5), '4 days ago');
});
