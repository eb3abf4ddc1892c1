const VALUES = [
  [1000, 'M'], [900, 'CM'], [500, 'D'], [400, 'CD'], [100, 'C'], [90, 'XC'],
  [50, 'L'], [40, 'XL'], [10, 'X'], [9, 'IX'], [5, 'V'], [4, 'IV'], [1, 'I'],
];

/** A number in Roman numerals. */
export function roman(number) {
  let out = '';
  for (const [value, sign] of VALUES) {
    while (number >= value) {
      out += sign;
      number -= value;
    }
  }
  return out;
}

const WORTH = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

/** The number that Roman numerals stand for. */
export function arabic(text) {
  let total = 0;
  for (let i = 0; i < text.length; i += 1) {
    const here = WORTH[text[i]];
    const next = WORTH[text[i + 1]] ?? 0;
    if (here < next) total -= here;
    else total += here;
  }
  return total;
}
