// Judges candidates warm: every test file of a candidate runs in a worker thread of one process,
// with modules of its own, and is ended when its time is up.
const { Worker } = require('node:worker_threads');
const { readFileSync, writeFileSync, writeSync } = require('node:fs');
const { resolve } = require('node:path');

const request = JSON.parse(readFileSync(0, 'utf8'));
const until = Date.now() + request.seconds * 1000;

const run = (file) =>
  new Promise((done) => {
    const worker = new Worker(resolve(file), { stdout: true, stderr: true, execArgv: request.options, argv: [] });
    let out = '';
    let late = false;
    worker.stdout.on('data', (data) => {
      if (out.length < 1 << 20) out += data;
    });
    worker.stderr.resume();
    worker.on('error', () => {});
    const timer = setTimeout(() => {
      late = true;
      worker.terminate();
    }, request.patience * 1000);
    worker.on('exit', (code) => {
      clearTimeout(timer);
      setImmediate(() => done({ file, out, fine: code === 0 && !late }));
    });
  });

(async () => {
  for (const candidate of request.candidates) {
    if (Date.now() > until) break;
    const before = candidate.files.map(([path]) => [path, readFileSync(path)]);
    const runs = [];
    try {
      for (const [path, text] of candidate.files) writeFileSync(path, text);
      for (const file of request.files) {
        const ran = await run(file);
        runs.push(ran);
        if (!ran.fine && !candidate.whole) break;
      }
    } finally {
      for (const [path, bytes] of before) writeFileSync(path, bytes);
    }
    writeSync(1, `\n${request.marker}${JSON.stringify({ id: candidate.id, runs })}\n`);
  }
  process.exit(0);
})();
