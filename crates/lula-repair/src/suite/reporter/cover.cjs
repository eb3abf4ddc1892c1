// The project's lines that ran since the last time that was asked, by V8's precise coverage.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { SourceMap } = require('node:module');
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

// How long the text of a script is that node runs: a script as a whole is told of only when it ran since
// the last time that was asked, which is when it is loaded.
const lengths = new Map();
const lengthOf = (script) => {
  const whole = script.functions.find((f) => f.functionName === '' && f.ranges[0].startOffset === 0);
  if (whole) lengths.set(script.scriptId, Math.max(whole.ranges[0].endOffset, lengths.get(script.scriptId) ?? 0));
  return lengths.get(script.scriptId);
};

// Places of a script that was translated on its way in (Babel, TypeScript), by the map that it carries;
// `null` where it carries none.
const maps = new Map();
const mapOf = (script, file) => {
  if (maps.has(script.scriptId)) return maps.get(script.scriptId);
  let map = null;
  try {
    if (!maps.size) ask('Debugger.enable');
    const source = ask('Debugger.getScriptSource', { scriptId: script.scriptId })?.scriptSource ?? '';
    const carried = source.match(/\/\/[#@] sourceMappingURL=data:application\/json[^,]*;base64,([A-Za-z0-9+/=]+)\s*$/);
    if (carried) {
      const entries = new SourceMap(JSON.parse(Buffer.from(carried[1], 'base64').toString('utf8')));
      const starts = [0];
      for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) starts.push(at + 1);
      // Each line of the file, by where the text begins that it became.
      const begins = new Map();
      for (let line = 0; line < starts.length; line += 1) {
        const end = (starts[line + 1] ?? source.length + 1) - 1;
        for (let at = starts[line]; at < end; at += 1) {
          const { originalLine, generatedLine, generatedColumn } = entries.findEntry(line, at - starts[line]);
          if (generatedLine !== line || generatedColumn !== at - starts[line] || originalLine === undefined) continue;
          if (originalLine >= file.lines.length) continue;
          if (!begins.has(originalLine)) begins.set(originalLine, []);
          begins.get(originalLine).push(at);
        }
      }
      map = begins;
    }
  } catch {}
  maps.set(script.scriptId, map);
  return map;
};

// The line that a place stands in.
const lineAt = (file, offset) => {
  let [low, high] = [0, file.lines.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (file.lines[middle][1] >= offset) high = middle;
    else low = middle + 1;
  }
  return low;
};

// How often the text at a place ran: inner ranges come after outer ones and overrule them.
const countAt = (ranges, at) => {
  let count = 0;
  for (const range of ranges) if (range.startOffset <= at && at < range.endOffset) count = range.count;
  return count;
};

exports.take = () => {
  const seen = {};
  for (const script of ask('Profiler.takePreciseCoverage')?.result ?? []) {
    if (!script.url || script.url.startsWith('node:') || script.url.startsWith('data:')) continue;
    const file = open(script.url);
    if (!file) continue;
    const length = lengthOf(script);
    if (!script.functions.some((f) => f.ranges[0].count > 0)) continue;
    const inside = script.functions.filter((f) => f.functionName !== '' || f.ranges[0].startOffset > 0).flatMap((f) => f.ranges);
    inside.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
    if (length !== undefined && Math.abs(length - file.length) > 2) {
      const begins = mapOf(script, file);
      if (begins) {
        const lines = [...begins].filter(([, places]) => places.some((at) => countAt(inside, at) > 0)).map(([line]) => line + 1);
        if (lines.length) seen[file.name] = ranges(lines.sort((a, b) => a - b));
      } else if (script.functions.some((f) => f.functionName !== '' && f.ranges[0].count > 0)) {
        // Nothing says which of its lines ran.
        seen[file.name] = `1-${file.lines.length}`;
      }
      continue;
    }
    const counts = new Array(file.lines.length).fill(0);
    for (const range of inside) {
      for (let line = lineAt(file, range.startOffset); line < file.lines.length; line += 1) {
        const [first, last] = file.lines[line];
        if (first >= range.endOffset) break;
        if (first < last && range.startOffset < last) {
          if (range.count > 0 || (range.startOffset <= first && range.endOffset >= last)) counts[line] = range.count;
        }
      }
    }
    const lines = counts.flatMap((count, line) => (count > 0 ? [line + 1] : []));
    if (lines.length) seen[file.name] = ranges(lines);
  }
  return seen;
};
