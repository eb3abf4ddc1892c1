// Runs one test file after another, each in the workspace that it is told.
const { parentPort } = require('node:worker_threads');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

parentPort.on('message', async ({ place, file }) => {
  process.env.TMPDIR = join(place, 'tmp');
  process.exitCode = undefined;
  const work = join(place, 'work', file);
  const { readFileSync } = require('node:fs');
  const stand = readFileSync(work, 'utf8').match(/"([^"\n]*runner-\d+\.cjs)"/)?.[1];
  let tests = [];
  try {
    await import(pathToFileURL(work));
    if (stand) tests = await require(stand).results();
  } catch {
    tests = [{ id: '', outcome: 'broken' }];
  }
  parentPort.postMessage(tests);
});
