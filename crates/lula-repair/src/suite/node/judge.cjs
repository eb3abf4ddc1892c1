// Judges candidates in worker threads of one process, each in a workspace of its own: a tree
// written from memory, where no test can reach it, and removed afterwards.
//
// The quick way runs many candidates in one thread, with a small stand-in for node's test runner;
// since every workspace has its own paths, every candidate gets fresh modules. It ends with the
// project unchanged, to show that nothing spilled over. The thorough way runs every test file in a
// thread of its own with node's real runner.
const { Worker } = require('node:worker_threads');
const fs = require('node:fs');
const { join, resolve } = require('node:path');
const { tmpdir } = require('node:os');

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
const until = Date.now() + request.seconds * 1000;
const root = process.cwd();
const leftOut = new Set(['.git', '.lula', 'target', '__pycache__']);

const pristine = { folders: [], links: [], files: [] };
const walk = (inside) => {
  for (const entry of fs.readdirSync(join(root, inside), { withFileTypes: true })) {
    const path = join(inside, entry.name);
    if (entry.isSymbolicLink()) pristine.links.push([path, fs.readlinkSync(join(root, path))]);
    else if (entry.isDirectory() && !leftOut.has(entry.name)) {
      pristine.folders.push(path);
      walk(path);
    } else if (entry.isFile()) {
      const full = join(root, path);
      pristine.files.push([path, fs.readFileSync(full), fs.statSync(full).mode & 0o777]);
    }
  }
};
walk('');
const size = pristine.files.reduce((sum, [, bytes]) => sum + bytes.length, 0);
// Scratch space is memory: a large project is forked beside itself instead.
const base = size < 32 << 20 ? tmpdir() : join(root, '.lula');
fs.mkdirSync(base, { recursive: true });

const fork = (changed) => {
  const place = fs.mkdtempSync(join(base, 'candidate-'));
  const top = join(place, 'work');
  fs.mkdirSync(top);
  fs.mkdirSync(join(place, 'tmp'));
  for (const path of pristine.folders) fs.mkdirSync(join(top, path));
  for (const [path, target] of pristine.links) fs.symlinkSync(target, join(top, path));
  for (const [path, bytes, mode] of pristine.files) {
    if (!changed.has(path)) fs.writeFileSync(join(top, path), bytes, { mode, flag: 'wx' });
  }
  for (const [path, text] of changed) fs.writeFileSync(join(top, path), text, { flag: 'wx' });
  return place;
};

// Ends what burns more time than any good candidate could, or says nothing for too long.
const watched = (end) => {
  const started = Date.now();
  const burnt = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(burnt);
    const late = Date.now() - started > request.patience * 1000;
    if (late || (user + system) / 1e6 > request.burn) end();
  }, 20);
  return () => clearInterval(timer);
};

const thread = (source, options) => {
  const worker = new Worker(source, { stdout: true, stderr: true, argv: [], ...options });
  worker.stderr.resume();
  worker.on('error', () => {});
  return worker;
};

// One test file with node's own runner.
const thorough = (place, file) =>
  new Promise((done) => {
    const env = { ...process.env, TMPDIR: join(place, 'tmp') };
    const worker = thread(resolve(file), { execArgv: request.options, env });
    let out = '';
    let late = false;
    worker.stdout.on('data', (data) => {
      if (out.length < 1 << 20) out += data;
    });
    const rest = watched(() => {
      late = true;
      worker.terminate();
    });
    worker.on('exit', (code) => {
      rest();
      setImmediate(() => done({ file, out, fine: code === 0 && !late }));
    });
  });

// One test file in a thread that has run others before.
let warm = null;
const quick = (place, file) =>
  new Promise((done) => {
    if (!warm) {
      // What makes node read TypeScript must be there too; reports are none of the stand-in's work.
      const execArgv = request.options.filter((option) => !option.startsWith('--test'));
      warm = thread(request.worker, execArgv.length ? { eval: true, execArgv } : { eval: true });
      warm.stdout.resume();
    }
    const worker = warm;
    const finish = (answer) => {
      rest();
      worker.removeAllListeners('message');
      worker.removeAllListeners('exit');
      done(answer);
    };
    const rest = watched(() => worker.terminate());
    worker.on('message', (tests) => finish({ file, tests, fine: tests.every((test) => test.outcome !== 'failed' && test.outcome !== 'broken') }));
    worker.on('exit', () => {
      warm = null;
      finish({ file, tests: [{ id: '', outcome: 'broken' }], fine: false });
    });
    worker.postMessage({ place, file });
  });

const judge = async (candidate) => {
  const changed = new Map(candidate.files);
  const place = fork(changed);
  if (request.quick) {
    // The stand-in takes the place of node's runner in this copy alone.
    for (const [index, file] of request.files.entries()) {
      const stand = join(place, `runner-${index}.cjs`);
      fs.writeFileSync(stand, request.runner);
      const path = join(place, 'work', file);
      const runner = /(\b(?:from|import|require)\b\s*\(?\s*)(['"])node:test\2/g;
      const text = fs.readFileSync(path, 'utf8').replace(runner, (_, head) => head + JSON.stringify(stand));
      fs.rmSync(path);
      fs.writeFileSync(path, text);
    }
  }
  const runs = [];
  const before = process.cpuUsage();
  process.chdir(join(place, 'work'));
  try {
    for (const file of request.files) {
      const ran = await (request.quick ? quick : thorough)(place, file);
      runs.push(ran);
      if (!ran.fine && !candidate.whole) break;
    }
  } finally {
    process.chdir(root);
    fs.rmSync(place, { recursive: true, force: true });
  }
  const { user, system } = process.cpuUsage(before);
  const answer = { id: candidate.id, runs, burnt: (user + system) / 1e6 };
  fs.writeSync(1, `\n${request.marker}${JSON.stringify(answer)}\n`);
};

(async () => {
  for (const candidate of request.candidates) {
    if (Date.now() > until) break;
    await judge(candidate);
  }
  if (request.quick && request.check != null) await judge({ id: request.check, files: [], whole: true });
  process.exit(0);
})();
