// A reporter for Vitest that tells what each test did.
import fs from 'node:fs';
import path from 'node:path';

const report = process.env.LULA_REPORT_HERE;
const cwd = process.cwd();
const say = (is, values) => fs.appendFileSync(report, `${JSON.stringify({ is, ...values })}\n`);
const plain = (text) => {
  const clean = String(text ?? '').replace(/\u001b\[[0-9;]*m/g, '');
  return clean.length <= 6000 ? clean : `${clean.slice(0, 2000)}\n...\n${clean.slice(-4000)}`;
};
const outcomes = { pass: 'passed', fail: 'failed' };

// The files that a test file imports, by what Vitest kept of them.
const imported = (vitest, file) => {
  try {
    const servers = [vitest, ...(vitest.projects ?? [])].flatMap((one) => [one.vite, one.server]).filter(Boolean);
    const graphs = servers.flatMap((server) => [...Object.values(server.environments ?? {}).map((one) => one.moduleGraph), server.moduleGraph]);
    const modules = graphs.flatMap((graph) => [...(graph?.getModulesByFile?.(file.filepath) ?? [])]);
    const files = modules.flatMap((module) => [...(module.importedModules ?? [])].map((one) => one.file));
    return [...files, ...Object.keys(file.importDurations ?? {})].filter((one) => typeof one === 'string');
  } catch {
    return [];
  }
};

export default class {
  onInit(vitest) {
    this.vitest = vitest;
    delete process.env.LULA_REPORT_HERE;
    say('begin', { runner: 'vitest', version: process.version, executable: process.execPath, cwd, args: process.lulaArgs ?? [] });
  }

  onFinished(files = [], errors = []) {
    this.tell(files, errors);
  }

  onTestRunEnd(modules, errors = []) {
    this.tell(modules.map((module) => module.task), errors);
  }

  tell(files, errors) {
    if (this.told) return;
    this.told = true;
    for (const file of files) {
      const name = path.relative(cwd, file.filepath).replaceAll(path.sep, '/');
      const message = (task) => plain((task.result?.errors ?? []).map((e) => `${e.stack ?? e.message}\n${e.diff ?? ''}`).join('\n'));
      if (file.result?.errors?.length) say('test', { id: name, outcome: 'broken', message: message(file), file: name });
      const walk = (task, titles) => {
        if (task.type === 'suite') {
          for (const child of task.tasks) walk(child, [...titles, task.name]);
          if (task.result?.errors?.length) say('test', { id: [...titles, task.name].join(' > '), outcome: 'broken', message: message(task), file: name });
          return;
        }
        const id = [...titles, task.name].join(' > ');
        say('test', { id, outcome: outcomes[task.result?.state] ?? 'skipped', message: message(task), ms: Math.round(task.result?.duration ?? 0), file: name });
      };
      for (const task of file.tasks) walk(task, [name]);
    }
    for (const error of errors) say('test', { id: 'collection', outcome: 'broken', message: plain(error.stack ?? error.message) });
    process.lulaImports?.(files.flatMap((file) => imported(this.vitest, file)));
    say('end', { exit: 0 });
  }
}
