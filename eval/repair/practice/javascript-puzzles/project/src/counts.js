/** How often each value comes. */
export function tally(values) {
  const counts = new Map();
  for (const value of values) {
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

/** Whether two words have the same letters. */
export function anagram(a, b) {
  const letters = (word) => word.toLowerCase().split('').sort().join('');
  return letters(a) === letters(b);
}

/** The first value that comes once, if there is one. */
export function lonely(values) {
  const counts = tally(values);
  for (const value of values) {
    if (counts.get(value) === 1) return value;
  }
  return undefined;
}

/** Values grouped by what a function says of them. */
export function group(values, by) {
  const out = {};
  for (const value of values) {
    const key = by(value);
    if (!(key in out)) out[key] = [];
    out[key].push(value);
  }
  return out;
}
