/** The sum of the digits, until one is left. */
export function root(number) {
  while (number > 9) {
    let sum = 0;
    while (number > 0) {
      sum += number % 10;
      number = Math.floor(number / 10);
    }
    number = sum;
  }
  return number;
}

/** Primes below a limit. */
export function primes(limit) {
  const found = [];
  for (let n = 2; n < limit; n += 1) {
    if (found.every((p) => n % p !== 0)) found.push(n);
  }
  return found;
}

/** Rows become columns. */
export function transpose(rows) {
  const out = [];
  for (let c = 0; c < rows[0].length; c += 1) {
    out.push(rows.map((row) => row[c]));
  }
  return out;
}

/** The fewest coins for an amount, or -1. */
export function fewest(coins, amount) {
  const best = new Array(amount + 1).fill(Infinity);
  best[0] = 0;
  for (let sum = 1; sum <= amount; sum += 1) {
    for (const coin of coins) {
      if (coin <= sum) best[sum] = Math.min(best[sum], best[sum - coin] + 1);
    }
  }
  return best[amount] === Infinity ? -1 : best[amount];
}

/** The middle of some numbers. */
export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
