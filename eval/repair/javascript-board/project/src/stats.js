// Numbers about what was done.

export function mean(values) {
  if (values.length === 0) return 0;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function median(values) {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// The longest run of days in a row.
export function streak(days) {
  const sorted = [...new Set(days)].sort((a, b) => a - b);
  let best = 0;
  let run = 0;
  let last = null;
  for (const day of sorted) {
    run = last !== null && day === last + 1 ? run + 1 : 1;
    best = Math.max(best, run);
    last = day;
  }
  return best;
}

export function histogram(values, width) {
  const bins = {};
  for (const value of values) {
    const bin = Math.floor(value / width) * width;
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  return bins;
}

export function movingAverage(values, size) {
  const out = [];
  for (let i = 0; i + size <= values.length; i += 1) {
    out.push(mean(values.slice(i, i + size)));
  }
  return out;
}

export function top(counts, n) {
  return Object.entries(counts)
    .sort(([a, x], [b, y]) => y - x || a.localeCompare(b))
    .slice(0, n)
    .map(([name]) => name);
}
