'use strict';

// Keeps the most recently used entries; each may also grow too old.
class Cache {
  constructor(size, { ttl = Infinity, now = () => Date.now() } = {}) {
    this.size = size;
    this.ttl = ttl;
    this.now = now;
    this.entries = new Map();
    this.hits = 0;
    this.misses = 0;
  }

  get(key) {
    const entry = this.entries.get(key);
    if (!entry || this.now() - entry.at >= this.ttl) {
      this.entries.delete(key);
      this.misses += 1;
      return undefined;
    }
    this.entries.delete(key);
    this.entries.set(key, entry);
    this.hits += 1;
    return entry.value;
  }

  set(key, value) {
    this.entries.delete(key);
    this.entries.set(key, { value, at: this.now() });
    while (this.entries.size > this.size) {
      const [oldest] = this.entries.keys();
      this.entries.delete(oldest);
    }
  }

  // Share of look-ups that were answered, in whole percent.
  rate() {
    const all = this.hits + this.misses;
    return all === 0 ? 0 : Math.round((this.hits * 100) / all);
  }
}

// The same promise for everybody who asks while it is under way.
function once(load) {
  const pending = new Map();
  return (key) => {
    if (!pending.has(key)) {
      const promise = load(key).finally(() => pending.delete(key));
      pending.set(key, promise);
    }
    return pending.get(key);
  };
}

module.exports = { Cache, once };
