/** The last few things that were used. */
export class Recent {
  constructor(size) {
    this.size = size;
    this.items = [];
  }

  use(item) {
    const at = this.items.indexOf(item);
    if (at !== -1) this.items.splice(at, 1);
    this.items.unshift(item);
    if (this.items.length > this.size) this.items.pop();
    return this;
  }

  list() {
    return this.items.slice();
  }
}

/** People in the order in which they can be reached from one. */
export function reach(friends, start) {
  const seen = new Set([start]);
  const queue = [start];
  const order = [];
  while (queue.length > 0) {
    const person = queue.shift();
    order.push(person);
    for (const friend of friends[person] ?? []) {
      if (!seen.has(friend)) {
        seen.add(friend);
        queue.push(friend);
      }
    }
  }
  return order;
}

/** Prices with a share off, never below zero. */
export function reduced(prices, percent) {
  return prices.map((price) => Math.max(0, price - (price * percent) / 100));
}
