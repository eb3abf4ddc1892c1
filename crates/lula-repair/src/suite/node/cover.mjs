// Writes, after every test, the project's lines that ran in it: V8's precise coverage, taken
// between tests inside the process that runs them.
import { Session } from 'node:inspector';
import { beforeEach, afterEach } from 'node:test';
import { readFileSync, writeSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { relative, isAbsolute } from 'node:path';

const marker = process.env.LULA_MARKER;
const root = realpathSync(process.cwd());
const session = new Session();
session.connect();
const ask = (method, params) => {
  let answer;
  session.post(method, params, (error, result) => {
    answer = result;
  });
  return answer;
};
ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const texts = new Map();
const starts = (url) => {
  if (!texts.has(url)) {
    const path = url.startsWith('file:') ? fileURLToPath(url) : url;
    const name = isAbsolute(path) ? relative(root, path) : '..';
    if (name.startsWith('..') || name.includes('node_modules')) {
      texts.set(url, null);
    } else {
      const text = readFileSync(path, 'utf8');
      const lines = [0];
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines.push(at + 1);
      texts.set(url, { name, lines, text });
    }
  }
  return texts.get(url);
};

const take = () => {
  const seen = {};
  const coverage = ask('Profiler.takePreciseCoverage');
  for (const script of coverage?.result ?? []) {
    if (!script.url || script.url.startsWith('node:') || script.url.startsWith('data:')) continue;
    const file = starts(script.url);
    if (!file) continue;
    // A loader may run another text than the one that stands in the file: then all of it is suspect.
    const whole = script.functions.find((f) => f.functionName === '' && f.ranges[0].startOffset === 0);
    if (whole) file.other = whole.ranges[0].endOffset !== file.text.length;
    if (file.other) {
      if (script.functions.some((f) => f.ranges[0].count > 0)) seen[file.name] = file.lines.map((_, line) => line + 1);
      continue;
    }
    // Inner ranges come after outer ones and overrule them.
    const counts = new Array(file.lines.length).fill(0);
    const ranges = script.functions.filter((f) => f.functionName !== '' || f.ranges[0].startOffset > 0).flatMap((f) => f.ranges);
    ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
    for (const range of ranges) {
      for (let line = 0; line < file.lines.length; line += 1) {
        const end = (file.lines[line + 1] ?? file.text.length + 1) - 1;
        const body = file.text.slice(file.lines[line], end);
        const first = file.lines[line] + (body.length - body.trimStart().length);
        const last = file.lines[line] + body.trimEnd().length;
        if (first < last && range.startOffset < last && range.endOffset > first) {
          if (range.count > 0 || (range.startOffset <= first && range.endOffset >= last)) counts[line] = range.count;
        }
      }
    }
    const lines = counts.flatMap((count, line) => (count > 0 ? [line + 1] : []));
    if (lines.length) seen[file.name] = lines;
  }
  return seen;
};

const wrote = new Set();
beforeEach(() => {
  take();
});
afterEach((context) => {
  const lines = take();
  const failed = context?.passed === false || context?.error != null;
  wrote.add(context?.name);
  writeSync(2, `\n${marker}${JSON.stringify({ test: context?.fullName ?? context?.name ?? '', failed, lines })}\n`);
});
process.on('exit', () => {
  if (!wrote.size) writeSync(2, `\n${marker}${JSON.stringify({ test: '', failed: process.exitCode !== 0, lines: take() })}\n`);
});
