'use strict';

const { escape } = require('./template.js');

// Posts that are out, newest first; pinned ones before all others.
function published(posts, today) {
  return posts
    .filter((post) => !post.draft && post.date <= today)
    .sort((a, b) => Number(b.pinned ?? false) - Number(a.pinned ?? false) || b.date.localeCompare(a.date));
}

// How many posts carry each tag, most used first, names in order among equals.
function tags(posts) {
  const counts = new Map();
  for (const post of posts) {
    for (const tag of new Set(post.tags ?? [])) {
      counts.set(tag, (counts.get(tag) ?? 0) + 1);
    }
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

// The first words of a text, cut between words, with dots where something is left out.
function excerpt(text, limit) {
  if (text.length <= limit) return text;
  const cut = text.slice(0, limit + 1).lastIndexOf(' ');
  return `${text.slice(0, cut > 0 ? cut : limit)}...`;
}

// A name for the address: lower case, words joined by dashes, never taken twice.
function slug(title, taken = new Set()) {
  const base = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  let name = base;
  for (let n = 2; taken.has(name); n += 1) {
    name = `${base}-${n}`;
  }
  taken.add(name);
  return name;
}

function toXml(posts, site) {
  const items = posts.map(
    (post) => `<item><title>${escape(post.title)}</title><link>${site}/${post.slug}</link></item>`,
  );
  return `<rss><channel>${items.join('')}</channel></rss>`;
}

module.exports = { published, tags, excerpt, slug, toXml };
