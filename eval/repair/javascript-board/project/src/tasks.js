// Tasks with priorities, labels and things that they wait for.

export class Task {
  constructor(id, title, { priority = 3, due = null, labels = [], after = [] } = {}) {
    this.id = id;
    this.title = title;
    this.priority = priority;
    this.due = due;
    this.labels = labels;
    this.after = after;
    this.done = false;
  }

  isOverdue(today) {
    return !this.done && this.due !== null && this.due < today;
  }
}

export class Board {
  constructor() {
    this.tasks = new Map();
  }

  add(task) {
    if (this.tasks.has(task.id)) {
      throw new Error(`duplicate task: ${task.id}`);
    }
    this.tasks.set(task.id, task);
    return this;
  }

  get(id) {
    return this.tasks.get(id) ?? null;
  }

  open() {
    return [...this.tasks.values()].filter((task) => !task.done);
  }

  // Every task that it waits for is done.
  isReady(task) {
    return task.after.every((id) => this.get(id)?.done ?? true);
  }

  // What to do next: most urgent first, then the nearest date, then the lowest id.
  next() {
    const ready = this.open().filter((task) => this.isReady(task));
    ready.sort(
      (a, b) =>
        a.priority - b.priority ||
        (a.due ?? Infinity) - (b.due ?? Infinity) ||
        a.id - b.id,
    );
    return ready[0] ?? null;
  }

  finish(id) {
    const task = this.get(id);
    if (!task || task.done || !this.isReady(task)) {
      return false;
    }
    task.done = true;
    return true;
  }

  progress() {
    if (this.tasks.size === 0) {
      return 0;
    }
    const done = [...this.tasks.values()].filter((task) => task.done).length;
    return Math.round((done / this.tasks.size) * 100);
  }

  byLabel() {
    const groups = {};
    for (const task of this.tasks.values()) {
      for (const label of task.labels) {
        (groups[label] ??= []).push(task.id);
      }
    }
    return groups;
  }

  overdue(today) {
    return this.open()
      .filter((task) => task.isOverdue(today))
      .map((task) => task.id);
  }

  // An order in which everything can be done; null where tasks wait for one another.
  plan() {
    const state = new Map();
    const order = [];
    const visit = (id) => {
      if (state.get(id) === 'done') return true;
      if (state.get(id) === 'open') return false;
      state.set(id, 'open');
      const task = this.get(id);
      for (const before of task ? task.after : []) {
        if (!visit(before)) return false;
      }
      state.set(id, 'done');
      order.push(id);
      return true;
    };
    for (const id of this.tasks.keys()) {
      if (!visit(id)) return null;
    }
    return order;
  }
}
