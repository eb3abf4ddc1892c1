// A small stand-in for node's test runner: the same names and the same order, and no reports.
// What it does not know (mocks, plans, snapshots) fails, which shows before it is relied upon.
const assert = require('node:assert');

const node = (name, parent) => ({ name, parent, children: [], hooks: { before: [], after: [], beforeEach: [], afterEach: [] } });
const top = node(null, null);
let current = top;
let tail = Promise.resolve();
const found = [];

// As TAP writes names.
const shown = (name) =>
  String(name).replaceAll('\\', '\\\\').replaceAll('#', '\\#').replaceAll('\n', '\\n').replaceAll('\t', '\\t').replaceAll('\r', '\\r');
const path = (of) => (of.parent === null ? [] : [...path(of.parent), shown(of.name)]);
const note = (of, outcome) => found.push({ id: path(of).join(' > '), outcome });

const arguments_ = (given) => {
  let [name, options, fn] = given;
  if (typeof name === 'function') [name, options, fn] = [name.name || '<anonymous>', {}, name];
  else if (name && typeof name === 'object') [name, options, fn] = [options?.name || '<anonymous>', name, options];
  else if (typeof options === 'function') [options, fn] = [{}, options];
  return { name: name ?? (fn?.name || '<anonymous>'), options: options ?? {}, fn: fn ?? (() => {}) };
};

const call = (fn, context) => {
  if (fn.length < 2) return fn.call(context, context);
  return new Promise((done, failed) => {
    fn.call(context, context, (error) => (error ? failed(error) : done()));
  });
};

const lineage = (of) => (of === null ? [] : [...lineage(of.parent), of]);

const runTest = async (of) => {
  if (of.skip) return note(of, 'skipped');
  let error = null;
  let skipped = false;
  const before = found.length;
  const pending = [];
  const context = {
    name: of.name,
    fullName: path(of).join(' > '),
    signal: new AbortController().signal,
    assert,
    diagnostic() {},
    todo() {
      of.todo = true;
    },
    skip() {
      skipped = true;
    },
    test(...given) {
      const { name, options, fn } = arguments_(given);
      const inner = Object.assign(node(name, of), { fn, skip: options.skip, todo: options.todo });
      const promise = (pending.at(-1) ?? Promise.resolve()).then(() => runTest(inner));
      pending.push(promise);
      return promise;
    },
  };
  for (const kind of Object.keys(of.hooks)) context[kind] = (fn) => of.hooks[kind].push(fn);
  try {
    for (const above of lineage(of.parent)) for (const hook of above.hooks.beforeEach) await call(hook, context);
    await call(of.fn, context);
    await Promise.all(pending);
  } catch (thrown) {
    error = thrown ?? new Error('nothing was thrown');
  }
  try {
    for (const above of lineage(of.parent).reverse()) for (const hook of above.hooks.afterEach) await call(hook, context);
    for (const hook of of.hooks.after) await call(hook, context);
  } catch (thrown) {
    error ??= thrown ?? new Error('nothing was thrown');
  }
  const leaf = found.length === before;
  if (skipped || (leaf && of.todo)) note(of, 'skipped');
  else if (leaf) note(of, error ? 'failed' : 'passed');
  else if (error && !of.todo) found.push({ id: '', outcome: 'broken' });
};

const runSuite = async (of) => {
  if (of.skip) return note(of, 'skipped');
  try {
    await of.body;
    for (const hook of of.hooks.before) await call(hook, {});
    for (const child of of.children) await (child.suite ? runSuite : runTest)(child);
    for (const hook of of.hooks.after) await call(hook, {});
  } catch {
    note(of, 'failed');
  }
};

const add = (suite, given, more = {}) => {
  const { name, options, fn } = arguments_(given);
  const made = Object.assign(node(name, current), { suite, fn, skip: options.skip, todo: options.todo }, more);
  current.children.push(made);
  if (suite && !made.skip) {
    const outer = current;
    current = made;
    try {
      made.body = fn.call({}, {});
    } catch (error) {
      made.body = Promise.reject(error);
      made.body.catch(() => {});
    } finally {
      current = outer;
    }
  }
  if (current !== top) return Promise.resolve();
  tail = tail.then(async () => {
    if (!top.begun) {
      top.begun = true;
      for (const hook of top.hooks.before) await call(hook, {});
    }
    await (suite ? runSuite : runTest)(made);
  });
  return tail;
};

const kind = (suite) => {
  const fn = (...given) => add(suite, given);
  fn.skip = (...given) => add(suite, given, { skip: true });
  fn.todo = (...given) => add(suite, given, { todo: true });
  fn.only = fn;
  return fn;
};

const test = kind(false);
const describe = kind(true);
module.exports = test;
module.exports.test = test;
module.exports.it = test;
module.exports.describe = describe;
module.exports.suite = describe;
module.exports.before = (fn) => current.hooks.before.push(fn);
module.exports.after = (fn) => current.hooks.after.push(fn);
module.exports.beforeEach = (fn) => current.hooks.beforeEach.push(fn);
module.exports.afterEach = (fn) => current.hooks.afterEach.push(fn);
module.exports.results = async () => {
  await new Promise((done) => setImmediate(done));
  await tail;
  for (const hook of top.hooks.after) await call(hook, {});
  return found;
};
