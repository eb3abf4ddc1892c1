'use strict';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escape(text) {
  return String(text).replace(/[&<>"]/g, (char) => ESCAPES[char]);
}

// The value at a dotted path; undefined where the way there ends early.
function lookup(data, path) {
  let value = data;
  for (const key of path.split('.')) {
    if (value === null || value === undefined) return undefined;
    value = value[key];
  }
  return value;
}

// Fills `{{name}}` (escaped), `{{{name}}}` (as it is) and `{{name|fallback}}`.
function render(template, data) {
  let out = '';
  let at = 0;
  while (at < template.length) {
    const open = template.indexOf('{{', at);
    if (open < 0) {
      out += template.slice(at);
      break;
    }
    out += template.slice(at, open);
    const raw = template.startsWith('{{{', open);
    const width = raw ? 3 : 2;
    const close = template.indexOf(raw ? '}}}' : '}}', open);
    if (close < 0) throw new Error(`unclosed tag at ${open}`);
    const [path, fallback = ''] = template.slice(open + width, close).trim().split('|');
    const found = lookup(data, path.trim());
    const value = found === undefined ? fallback : found;
    out += raw ? String(value) : escape(value);
    at = close + width;
  }
  return out;
}

// Joins items as a sentence does: "a, b and c".
function listing(items) {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`;
}

module.exports = { escape, lookup, render, listing };
