// A reporter for node's own runner that tells what each test did, and prints nothing. What a file printed
// that could not even be loaded stands nowhere else.
import fs from 'node:fs';
import path from 'node:path';

const report = process.env.LULA_REPORT;
const cwd = process.cwd();
const say = (is, values) => report && fs.appendFileSync(report, `${JSON.stringify({ is, ...values })}\n`);
const plain = (error) => {
  const cause = error?.cause ?? error;
  const text = String(cause?.stack ?? cause ?? '');
  return text.length <= 6000 ? text : `${text.slice(0, 2000)}\n...\n${text.slice(-4000)}`;
};

export default async function* watch(source) {
  let begun = false;
  const titles = [];
  const printed = new Map();
  for await (const { type, data } of source) {
    if (!begun) {
      begun = true;
      say('begin', { runner: 'node:test', version: process.version, executable: process.execPath, cwd, args: [...process.execArgv, ...process.argv.slice(1)] });
    }
    if (type === 'test:start') {
      titles.length = data.nesting;
      titles[data.nesting] = data.name;
    }
    if (type === 'test:stderr') {
      printed.set(data.file, `${printed.get(data.file) ?? ''}${data.message}`.slice(-4000));
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details?.type === 'suite' && type === 'test:pass') continue;
    const file = path.relative(cwd, data.file ?? '').replaceAll(path.sep, '/');
    const names = [...titles.slice(0, data.nesting), data.name];
    // A file that is its own test has its path for a name.
    const id = (names.length === 1 && path.resolve(names[0]) === data.file ? [file] : [file, ...names]).join(' > ');
    const outcome = data.skip !== undefined || data.todo !== undefined ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    if (data.details?.type === 'suite' && data.details.error?.failureType === 'subtestsFailed') continue;
    if (names.length === 1 && id === file && outcome === 'passed') continue;
    const told = id === file && printed.get(data.file);
    const why = [plain(data.details?.error), told].filter(Boolean).join('\n');
    say('test', { id, outcome, message: outcome === 'failed' ? why : '', ms: Math.round(data.details?.duration_ms ?? 0), file });
  }
  say('end', { exit: 0 });
}
