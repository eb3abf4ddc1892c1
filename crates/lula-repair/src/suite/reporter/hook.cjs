// Loaded by every node process that a test command starts. In one that runs tests it makes the runner
// tell what each test did, as lines of JSON in a file that nothing printed by a test reaches, and takes
// itself out of the environment, so that what the tests start is not watched.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const Module = require('node:module');
const { fileURLToPath } = require('node:url');

const report = process.env.LULA_REPORT;
const folder = process.env.LULA_FOLDER;
const covers = Boolean(process.env.LULA_COVER);
const cwd = process.cwd();
const names = (process.env.LULA_NAMES ?? '').split(',').filter(Boolean);

const shortened = (text) => {
  const plain = String(text ?? '').replace(/\u001b\[[0-9;]*m/g, '');
  return plain.length <= 6000 ? plain : `${plain.slice(0, 2000)}\n...\n${plain.slice(-4000)}`;
};
// The file is opened once and written with nothing but a number and bytes: tests put properties on
// `Object.prototype`, replace `fs`, and are heard all the same.
const { openSync, writeSync } = fs;
const { stringify } = JSON;
const bytesOf = Buffer.from;
let sheet;
const say = (is, values) => {
  try {
    sheet ??= openSync(report, 'a');
    const line = bytesOf(`${stringify({ is, ...values })}\n`);
    for (let at = 0; at < line.length; ) at += writeSync(sheet, line, at);
  } catch {}
};
const relative = (file) => (file && path.isAbsolute(file) ? path.relative(cwd, file) : file || '').replaceAll(path.sep, '/');
const named = (file, titles) => [relative(file), ...titles].filter(Boolean).join(' > ');

const leave = () => {
  const before = process.env.LULA_NODE_OPTIONS;
  for (const name of Object.keys(process.env)) if (name.startsWith('LULA_')) delete process.env[name];
  if (before) process.env.NODE_OPTIONS = before;
  else delete process.env.NODE_OPTIONS;
};

const root = process.env.LULA_ROOT || cwd;
const foreign = (file) => file.replaceAll(path.sep, '/').includes('/node_modules/');
// A place in the project as the project's path is written, which may lead through links; any other as it is.
const top = (() => {
  try {
    return fs.realpathSync(root);
  } catch {
    return root;
  }
})();
const inside = (place) => place === top || place.startsWith(top + path.sep);
const written = (place) => (inside(place) ? path.join(root, path.relative(top, place)) : place);

// Where links in `node_modules` lead that have the name of one of the project's own packages: the nearest
// to the tests. What lies above the project is no part of it. A copy that another package brought is not
// looked at: whether a test loads it shows when it does.
const linked = () => {
  const found = {};
  for (const name of names) {
    for (let at = cwd; at === top || at.startsWith(top + path.sep); at = path.dirname(at)) {
      try {
        const place = fs.realpathSync(path.join(at, 'node_modules', name));
        if (!inside(place)) found[name] = place;
        else if (!foreign(place)) found[name] = path.join(written(place), 'package.json');
        break;
      } catch {}
    }
  }
  if (Object.keys(found).length) say('origins', { origins: found });
};

// The package of the project that a folder belongs to.
const packages = new Map();
const packageOf = (folder) => {
  if (packages.has(folder) || !inside(folder)) return packages.get(folder);
  let own;
  try {
    own = { name: JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).name, folder };
  } catch {
    own = packageOf(path.dirname(folder));
  }
  packages.set(folder, own);
  return own;
};

// What this process loads of the project's own packages, told when it ends: where a package names itself,
// the file that it gets; where the project's code gets a copy of one, that; else the first file of the
// package that was loaded. A copy that other packages load, as tools do of what they are made of, is theirs.
const testCode = /(^|[\\/])(tests?|__tests__|specs?|node_modules)[\\/]|[.\-_](test|spec)\.|(^|[\\/])(tests?|specs?|\.[^\\/]*)\.[cm]?[jt]s$/;
const loads = () => {
  if (!names.length) return;
  const found = {};
  const copies = {};
  const load = Module._load;
  Module._load = function loaded(request, parent, ...rest) {
    const name = names.find((one) => request === one || String(request).startsWith(`${one}/`));
    if (name && !found[name] && parent?.filename && !foreign(parent.filename)) {
      try {
        const file = Module._resolveFilename(request, parent, ...rest);
        if (packageOf(path.dirname(parent.filename))?.name === name) found[name] = written(file);
        else if (foreign(file)) copies[name] ??= written(file);
      } catch {}
    }
    return load.call(this, request, parent, ...rest);
  };
  process.on('exit', () => {
    first(Object.keys(Module._cache), found);
    // Modules of imports are in no table that can be asked, but a debugger is told of every script.
    if (!Object.keys(found).length) first(scripts(), found);
    // Where its own code is loaded too, that is what is tested.
    for (const name of Object.keys(copies)) found[name] ??= copies[name];
    if (Object.keys(found).length) say('origins', { origins: found });
  });
};

// The first file of each of the project's packages that is no test.
const first = (files, found) => {
  for (const file of files) {
    const own = inside(file) && !foreign(file) && packageOf(path.dirname(file));
    if (!own || !names.includes(own.name) || testCode.test(path.relative(own.folder, file))) continue;
    found[own.name] ??= written(file);
  }
};

// For reporters of runners that load the project's code in some way of their own.
const imports = (files) => {
  const found = {};
  first(files, found);
  if (Object.keys(found).length) say('origins', { origins: found });
};

const scripts = () => {
  const files = [];
  try {
    const session = new (require('node:inspector').Session)();
    session.connect();
    session.on('Debugger.scriptParsed', ({ params: { url } }) => {
      if (url.startsWith('file://')) files.push(fileURLToPath(url));
    });
    session.post('Debugger.enable');
    session.disconnect();
  } catch {}
  return files;
};

const begin = (runner, extra) =>
  say('begin', { runner, version: process.version, executable: process.execPath, cwd, args: process.lulaArgs, ...extra });

const only = () => {
  try {
    return new Set(JSON.parse(fs.readFileSync(path.join(folder, 'only'), 'utf8')));
  } catch {
    return new Set();
  }
};

// After a module of a runner was loaded, by the end of its path. It is heard of by the loader of its
// kind and by the loader of all modules: coverage tools replace the one, imports pass by the other.
const after = {};
const heard = new WeakSet();
const tell = (filename, exported) => {
  const name = String(filename).replaceAll(path.sep, '/');
  for (const [end, work] of Object.entries(after)) {
    if (!name.endsWith(end)) continue;
    const found = [exported, exported?.default, exported?.['module.exports'], exported?.Runner, exported?.Jasmine].find((value) => typeof value === 'function');
    // A runner that is built otherwise runs as it does without us.
    if (!found || heard.has(found)) continue;
    heard.add(found);
    work(found);
  }
};
const watch = () => {
  const original = Module._extensions['.js'];
  Module._extensions['.js'] = function load(module, filename) {
    const result = original.call(this, module, filename);
    tell(filename, module.exports);
    return result;
  };
  const names = Object.keys(after).map((end) => path.basename(end, '.js'));
  const load = Module._load;
  Module._load = function loaded(request, parent, ...rest) {
    const exported = load.call(this, request, parent, ...rest);
    if (names.includes(path.basename(String(request), '.js'))) {
      try {
        tell(Module._resolveFilename(request, parent, ...rest), exported);
      } catch {}
    }
    return exported;
  };
};

const mocha = () => {
  const cover = covers ? require(path.join(folder, 'lula_cover.cjs')) : null;
  after['/mocha/lib/runner.js'] = (Runner) => {
    leave();
    const told = (runner) => {
      if (runner.lulaTold) return;
      runner.lulaTold = true;
      begin('mocha', {});
      const titles = (test) => test.titlePath();
      const wanted = only();
      if (wanted.size) {
        const prune = (suite) => {
          suite.tests = suite.tests.filter((test) => wanted.has(named(test.file, titles(test))));
          suite.suites.forEach(prune);
        };
        prune(runner.suite);
        runner.total = runner.suite.total();
      }
      const ended = (outcome) => (test, error) => {
        if (outcome === 'failed' && test.type === 'hook') outcome = 'broken';
        const message = outcome === 'failed' || outcome === 'broken' ? shortened(error?.stack ?? error) + difference(error) : '';
        say('test', { id: named(test.file ?? test.parent?.file, titles(test)), outcome, message, ms: test.duration ?? 0, file: relative(test.file) });
      };
      runner.on('test', (test) => {
        say('start', { id: named(test.file, titles(test)) });
        if (cover) cover.take();
      });
      if (cover) runner.on('test end', (test) => say('lines', { id: named(test.file, titles(test)), lines: cover.take() }));
      runner.on('test end', (test) => say('done', { id: named(test.file, titles(test)) }));
      runner.on('pass', ended('passed'));
      runner.on('fail', (test, error) => ended('failed')(test, error));
      runner.on('pending', ended('skipped'));
      runner.once('end', () => say('end', { exit: runner.failures }));
    };
    for (const name of ['run', 'runAsync']) {
      const run = Runner.prototype[name];
      if (typeof run !== 'function') continue;
      Runner.prototype[name] = function watched(...rest) {
        told(this);
        return run.apply(this, rest);
      };
    }
  };
  watch();
  // With options for node, this process starts another one that runs the tests.
  return true;
};

const difference = (error) => {
  const expected = error?.expected ?? error?.expects;
  if (expected === undefined) return '';
  try {
    return `\nexpected: ${JSON.stringify(expected)}\nactual: ${JSON.stringify(error.actual)}`.slice(0, 1500);
  } catch {
    return '';
  }
};

const jasmine = () => {
  after['/jasmine/lib/jasmine.js'] = (Jasmine) => {
    const execute = Jasmine.prototype.execute;
    Jasmine.prototype.execute = function watched(...rest) {
      begin('jasmine', {});
      this.addReporter({
        specDone(spec) {
          const outcome = { passed: 'passed', failed: 'failed' }[spec.status] ?? 'skipped';
          const message = shortened((spec.failedExpectations ?? []).map((f) => `${f.message}\n${f.stack}`).join('\n'));
          say('test', { id: named(spec.filename, [spec.fullName]), outcome, message, ms: spec.duration ?? 0 });
        },
        jasmineDone(all) {
          for (const f of all.failedExpectations ?? []) say('test', { id: 'collection', outcome: 'broken', message: shortened(`${f.message}\n${f.stack}`) });
          say('end', { exit: all.overallStatus === 'passed' ? 0 : 1 });
        },
      });
      return execute.apply(this, rest);
    };
  };
  watch();
};

// uvu has no reporters and is loaded by imports as often as not. Each of its suites is made into something to
// run by `bind`, with its tests and the hooks around them: these are watched.
const uvu = () => {
  begin('uvu', {});
  process.on('exit', (code) => say('end', { exit: code }));
  const cover = covers ? require(path.join(folder, 'lula_cover.cjs')) : null;
  const wanted = only();
  // uvu names files from the folder that it was told to look in.
  const words = process.lulaArgs.slice(1);
  const valued = /^(-[irC]|--(ignore|require|cwd))$/;
  const at = words.findIndex((word) => word === '-C' || word === '--cwd');
  const base = path.resolve(cwd, at < 0 ? '.' : (words[at + 1] ?? '.'));
  const folders = words.filter((word, n) => !word.startsWith('-') && !valued.test(words[n - 1] ?? ''));
  const place = (name) => {
    const files = [...folders, '.'].map((one) => path.resolve(base, one, name));
    return relative(files.find((file) => fs.existsSync(file)) ?? name);
  };
  const watch = (suite, titles) => {
    const ids = new Map();
    const id = (test) => ids.get(test);
    for (const list of ['tests', 'only']) {
      for (const test of suite[list]) ids.set(test, [...titles, test.name].join(' > '));
      if (wanted.size) suite[list] = suite[list].filter((test) => wanted.has(id(test)));
    }
    const told = new Set();
    let current = null;
    const tell = (test, outcome, error) => {
      if (!test || told.has(test)) return;
      told.add(test);
      const message = error === undefined ? '' : shortened(error?.stack ?? error) + difference(error);
      if (cover) say('lines', { id: id(test), lines: cover.take() });
      say('test', { id: id(test), outcome, message });
      say('done', { id: id(test) });
    };
    const run = suite.only.length ? suite.only : suite.tests;
    for (const test of suite.tests) if (!run.includes(test)) say('test', { id: id(test), outcome: 'skipped' });
    for (let n = 0; n < suite.skips; n += 1) say('test', { id: [...titles, 'a skipped test'].join(' > '), outcome: 'skipped' });
    const list = suite.only.length ? 'only' : 'tests';
    const order = [...run];
    suite[list] = run.map((test) => ({
      ...test,
      handler: async (state) => {
        try {
          await test.handler(state);
          current.passed = true;
        } catch (error) {
          current.error = error;
          throw error;
        }
      },
    }));
    suite.bEach = [
      () => {
        current = { test: order.shift() };
        if (cover) cover.take();
        say('start', { id: id(current.test) });
      },
      ...suite.bEach,
    ];
    suite.aEach = [...suite.aEach, () => tell(current.test, current.passed ? 'passed' : 'failed', current.error)];
    return () => {
      // A hook that failed kept the others from what they would have told.
      if (current) tell(current.test, 'failed', current.error ?? 'a hook failed');
      for (const test of order) tell(test, 'broken', 'it was not run: a hook failed');
    };
  };
  const bind = Function.prototype.bind;
  Function.prototype.bind = function bound(...given) {
    const run = bind.apply(this, given);
    const [, suite, name] = given;
    const lists = ['tests', 'only', 'before', 'after', 'bEach', 'aEach'];
    if (!suite || typeof suite !== 'object' || !lists.every((list) => Array.isArray(suite[list]))) return run;
    const file = globalThis.UVU_QUEUE?.[globalThis.UVU_INDEX || 0]?.[0];
    const settle = watch(suite, [file && place(file), name].filter(Boolean));
    return () => run().finally(settle);
  };
};

// To measure coverage these versions of node-tap start themselves once more, below nyc, where their words
// about tests reach nobody. What is covered decides nothing here.
const measuring = (script) => {
  try {
    const { version } = JSON.parse(fs.readFileSync(path.join(path.dirname(script), '..', 'package.json'), 'utf8'));
    const major = Number.parseInt(version, 10);
    return major >= 14 && major < 18 ? ['--no-coverage'] : [];
  } catch {
    return [];
  }
};

// A runner that prints TAP in a process of its own: what it prints is its report.
const tap = (runner, ...words) => (script) => {
  if (words.length) option(...words, ...(runner === 'tap' ? measuring(script) : []));
  begin(runner, {});
  const write = process.stdout.write;
  process.stdout.write = function watched(chunk, ...rest) {
    say('out', { text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    return write.call(this, chunk, ...rest);
  };
  process.on('exit', (code) => say('end', { exit: code }));
};

// Tests print to the same output as tape does, so tape is asked and its output is not read.
const tape = () => {
  const cover = covers ? require(path.join(folder, 'lula_cover.cjs')) : null;
  after['/tape/lib/results.js'] = (Results) => {
    begin('tape', {});
    process.on('exit', (code) => say('end', { exit: code }));
    const watch = Results.prototype._watch;
    Results.prototype._watch = function watched(test) {
      const names = [...(test.lulaNames ?? []), String(test.name ?? '')];
      test.on('test', (inner) => {
        inner.lulaNames = names;
      });
      if (cover) {
        test.once('prerun', () => cover.take());
        test.once('end', () => say('lines', { id: named('', names), lines: cover.take() }));
      }
      test.on('result', (result) => {
        if (!result || typeof result !== 'object') return;
        const outcome = result.skip ? 'skipped' : result.ok || result.todo ? 'passed' : 'failed';
        const message = outcome === 'failed' ? shortened(`${result.operator ?? ''} ${result.error?.stack ?? ''}`) + difference(result) : '';
        say('test', { id: named('', [...names, String(result.name ?? '')]), outcome, message });
      });
      return watch.call(this, test);
    };
  };
  watch();
};

// Options stand before whatever is passed on to something else.
const option = (...words) => {
  const end = process.argv.indexOf('--');
  process.argv.splice(end < 0 ? process.argv.length : end, 0, ...words);
};

const runners = [
  [/\/mocha\/bin\/_?mocha(\.js)?$/, mocha],
  [/\/jasmine\/bin\/(jasmine|worker)(\.js)?$/, jasmine],
  [/\/(jest|jest-cli)\/bin\/jest(\.js)?$/, () => {
    option(...(process.argv.some((word) => word.startsWith('--reporters')) ? [] : ['--reporters=default']), `--reporters=${path.join(folder, 'lula_jest.cjs')}`);
  }],
  [/\/vitest\/(vitest\.mjs|dist\/cli\.js)$/, () => {
    option(...(process.argv.some((word) => word.startsWith('--reporter')) ? [] : ['--reporter=default']), `--reporter=${path.join(folder, 'lula_vitest.mjs')}`);
  }],
  [/\/ava\/(entrypoints\/cli\.mjs|cli\.js)$/, tap('ava', '--tap')],
  [/\/(tap|@tapjs\/run)\/(bin|dist\/esm)\/.*\.(m?js)$/, tap('tap', '--reporter=tap')],
  [/\/tape\/bin\/tape(\.js)?$/, tape],
  [/\/uvu\/bin(\.js)?$/, uvu],
];

const start = () => {
  if (!report || !folder || !require('node:worker_threads').isMainThread || !process.argv[1]) return;
  // Node's own runner was told through its options; its files are processes of its own.
  if (process.env.NODE_TEST_CONTEXT) return loads();
  if (process.execArgv.includes('--test')) return linked();
  // nyc starts programs through a stand-in for node, which names what it is to run after itself.
  const at = process.argv[2] && /[\\/]\.node-spawn-wrap-[^\\/]+[\\/]/.test(process.argv[1]) ? 2 : 1;
  let script = process.argv[at];
  try {
    script = fs.realpathSync(script);
  } catch {}
  script = script.replaceAll(path.sep, '/');
  const known = runners.find(([pattern]) => pattern.test(script));
  if (!known) return;
  process.lulaArgs = process.argv.slice(at);
  linked();
  loads();
  if (known[1](script) === true) return;
  leave();
  // Taken up by the reporters that run in this process, and by nothing that it starts.
  process.env.LULA_REPORT_HERE = report;
  process.lulaImports = imports;
};
start();
