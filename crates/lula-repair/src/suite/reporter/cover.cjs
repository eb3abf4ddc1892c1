// The project's lines that ran since the last time that was asked, by V8's precise coverage.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { Session } = require('node:inspector');

const root = fs.realpathSync(process.env.LULA_ROOT || process.cwd());
const session = new Session();
session.connect();
const ask = (method, params) => {
  let answer;
  session.post(method, params, (_, result) => {
    answer = result;
  });
  return answer;
};
ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

const known = new Map();
const open = (url) => {
  if (known.has(url)) return known.get(url);
  let file = null;
  try {
    const place = url.startsWith('file:') ? fileURLToPath(url) : url;
    const name = path.isAbsolute(place) ? path.relative(root, place) : '..';
    if (!name.startsWith('..') && !name.includes('node_modules')) {
      const text = fs.readFileSync(place, 'utf8');
      const lines = [];
      let at = 0;
      for (const body of text.split('\n')) {
        lines.push([at + body.length - body.trimStart().length, at + body.trimEnd().length]);
        at += body.length + 1;
      }
      file = { name, lines, length: text.length };
    }
  } catch {}
  known.set(url, file);
  return file;
};

const ranges = (lines) => {
  const out = [];
  for (const line of lines) {
    if (out.length && out[out.length - 1][1] === line - 1) out[out.length - 1][1] = line;
    else out.push([line, line]);
  }
  return out.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(',');
};

exports.take = () => {
  const seen = {};
  for (const script of ask('Profiler.takePreciseCoverage')?.result ?? []) {
    if (!script.url || script.url.startsWith('node:') || script.url.startsWith('data:')) continue;
    const file = open(script.url);
    if (!file || !script.functions.some((f) => f.ranges[0].count > 0)) continue;
    // What was translated on its way in (Babel, TypeScript) has other places than its file: then all of
    // a file counts in which a function ran.
    const end = Math.max(...script.functions.map((f) => f.ranges[0].endOffset));
    if (Math.abs(end - file.length) > 2) {
      const ran = script.functions.some((f) => f.functionName !== '' && f.ranges[0].count > 0);
      if (ran) seen[file.name] = `1-${file.lines.length}`;
      continue;
    }
    const counts = new Array(file.lines.length).fill(0);
    const all = script.functions.filter((f) => f.functionName !== '' || f.ranges[0].startOffset > 0).flatMap((f) => f.ranges);
    // Inner ranges come after outer ones and overrule them.
    all.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
    for (const range of all) {
      for (let line = 0; line < file.lines.length; line += 1) {
        const [first, last] = file.lines[line];
        if (first < last && range.startOffset < last && range.endOffset > first) {
          if (range.count > 0 || (range.startOffset <= first && range.endOffset >= last)) counts[line] = range.count;
        }
      }
    }
    const lines = counts.flatMap((count, line) => (count > 0 ? [line + 1] : []));
    if (lines.length) seen[file.name] = ranges(lines);
  }
  return seen;
};
