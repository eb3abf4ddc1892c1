/** Whether a text reads the same both ways, letters and digits only. */
export function palindrome(text) {
  const clean = text.toLowerCase().replace(/[^a-z0-9]/g, '');
  for (let i = 0; i < clean.length / 2; i += 1) {
    if (clean[i] !== clean[clean.length - 1 - i]) return false;
  }
  return true;
}

/** Words with a capital first. */
export function title(text) {
  return text.split(' ').map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
}

/** A text cut to a length, with dots where something is lost. */
export function shorten(text, length) {
  if (text.length <= length) return text;
  return text.slice(0, length - 3) + '...';
}

/** The longest word; the first of equals. */
export function longest(text) {
  let best = '';
  for (const word of text.split(' ')) {
    if (word.length > best.length) best = word;
  }
  return best;
}

/** A name for people as one for machines. */
export function snake(name) {
  return name.replace(/[A-Z]/g, (letter) => '_' + letter.toLowerCase());
}
