/** Cuts a list into pieces of a size. */
export function chunk(list, size) {
  const out = [];
  for (let i = 0; i < list.length; i += size) {
    out.push(list.slice(i, i + size));
  }
  return out;
}

/** Two sorted lists as one. */
export function merge(a, b) {
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] <= b[j]) {
      out.push(a[i]);
      i += 1;
    } else {
      out.push(b[j]);
      j += 1;
    }
  }
  return out.concat(a.slice(i), b.slice(j));
}

/** All lists inside of lists as one. */
export function flat(value) {
  if (!Array.isArray(value)) return [value];
  const out = [];
  for (const item of value) {
    out.push(...flat(item));
  }
  return out;
}
