// Dates as days since 1970, so that no time zone gets in the way.

const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
export const WEEK = 7;

export function isLeap(year) {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

export function daysIn(year, month) {
  if (month < 1 || month > 12) {
    throw new RangeError(`no such month: ${month}`);
  }
  return month === 2 && isLeap(year) ? 29 : MONTHS[month - 1];
}

export function toDays(text) {
  const [year, month, day] = text.split('-').map(Number);
  let days = 0;
  for (let y = 1970; y < year; y += 1) {
    days += isLeap(y) ? 366 : 365;
  }
  for (let m = 1; m < month; m += 1) {
    days += daysIn(year, m);
  }
  return days + day - 1;
}

// Monday is 0.
export function weekday(days) {
  return (days + 3) % WEEK;
}

export function workdays(from, to) {
  let count = 0;
  for (let day = from; day <= to; day += 1) {
    if (weekday(day) < 5) {
      count += 1;
    }
  }
  return count;
}

export function relative(days, today) {
  const gap = days - today;
  if (gap === 0) return 'today';
  if (gap === 1) return 'tomorrow';
  if (gap === -1) return 'yesterday';
  return gap > 0 ? `in ${gap} days` : `${-gap} days ago`;
}
