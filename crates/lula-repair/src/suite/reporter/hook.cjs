// Loaded by every node process that a test command starts. In one that runs tests it makes the runner
// tell what each test did, as lines of JSON in a file that nothing printed by a test reaches, and takes
// itself out of the environment, so that what the tests start is not watched.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const Module = require('node:module');

const report = process.env.LULA_REPORT;
const folder = process.env.LULA_FOLDER;
const covers = Boolean(process.env.LULA_COVER);
const cwd = process.cwd();
const names = (process.env.LULA_NAMES ?? '').split(',').filter(Boolean);

const shortened = (text) => {
  const plain = String(text ?? '').replace(/\u001b\[[0-9;]*m/g, '');
  return plain.length <= 6000 ? plain : `${plain.slice(0, 2000)}\n...\n${plain.slice(-4000)}`;
};
const say = (is, values) => {
  try {
    fs.appendFileSync(report, `${JSON.stringify({ is, ...values })}\n`);
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

// Where the project's own packages come from where tests name them: the nearest entry of that name in a
// `node_modules` of the project. What lies above the project is no part of it and is not looked at.
const origins = () => {
  const found = {};
  const root = process.env.LULA_ROOT || cwd;
  const top = fs.realpathSync(root);
  for (const name of names) {
    for (let at = cwd; at === top || at.startsWith(top + path.sep); at = path.dirname(at)) {
      try {
        const place = fs.realpathSync(path.join(at, 'node_modules', name));
        // As the project's path is written, which may lead through links.
        const inside = place === top || place.startsWith(top + path.sep);
        found[name] = inside ? path.join(root, path.relative(top, place), 'package.json') : place;
        break;
      } catch {}
    }
  }
  if (Object.keys(found).length) say('origins', { origins: found });
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
  if (!error || typeof error !== 'object' || !('expected' in error)) return '';
  try {
    return `\nexpected: ${JSON.stringify(error.expected)}\nactual: ${JSON.stringify(error.actual)}`.slice(0, 1500);
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

// A runner that prints TAP in a process of its own: what it prints is its report.
const tap = (runner, ...words) => () => {
  if (words.length) option(...words);
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
];

const start = () => {
  if (!report || !folder || !require('node:worker_threads').isMainThread || !process.argv[1]) return;
  // Node's own runner was told through its options; its files are processes of its own.
  if (process.execArgv.includes('--test') || process.env.NODE_TEST_CONTEXT) return;
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
  try {
    origins();
  } catch {}
  if (known[1]() === true) return;
  leave();
  // Taken up by the reporters that run in this process, and by nothing that it starts.
  process.env.LULA_REPORT_HERE = report;
};
start();
