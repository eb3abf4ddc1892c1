// A reporter for Jest that tells what each test did.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const report = process.env.LULA_REPORT_HERE;
delete process.env.LULA_REPORT_HERE;
const cwd = process.cwd();
const say = (is, values) => fs.appendFileSync(report, `${JSON.stringify({ is, ...values })}\n`);
const plain = (text) => {
  const clean = String(text ?? '').replace(/\u001b\[[0-9;]*m/g, '');
  return clean.length <= 6000 ? clean : `${clean.slice(0, 2000)}\n...\n${clean.slice(-4000)}`;
};
const outcomes = { passed: 'passed', failed: 'failed' };

// The files that a test file imports, as Jest itself finds them.
const imported = ({ path: file, context }) => {
  const found = (request) => {
    try {
      return [context.resolver.resolveModule(file, request)];
    } catch {
      return [];
    }
  };
  try {
    return (context.hasteFS.getDependencies(file) ?? []).flatMap(found);
  } catch {
    return [];
  }
};

module.exports = class {
  constructor() {
    this.files = [];
  }

  onRunStart() {
    say('begin', { runner: 'jest', version: process.version, executable: process.execPath, cwd, args: process.lulaArgs ?? [] });
  }

  onTestFileResult(test, result) {
    this.onTestResult(test, result);
  }

  onTestResult(test, result) {
    const file = path.relative(cwd, test.path).replaceAll(path.sep, '/');
    if (result.testExecError) say('test', { id: file, outcome: 'broken', message: plain(result.failureMessage ?? result.testExecError.message), file });
    this.files.push(...imported(test));
    for (const one of result.testResults) {
      const id = [file, ...one.ancestorTitles, one.title].join(' > ');
      say('test', { id, outcome: outcomes[one.status] ?? 'skipped', message: plain((one.failureMessages ?? []).join('\n')), ms: one.duration ?? 0, file });
    }
  }

  onRunComplete(_, results) {
    process.lulaImports?.(this.files);
    say('end', { exit: results.success ? 0 : 1 });
  }
};
