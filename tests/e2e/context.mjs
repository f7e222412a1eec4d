// Where things are, from the command line that every script of this folder takes.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** {root, build, models, work, vmpack, positionals}: absolute paths. */
export function context() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { build: { type: 'string' }, models: { type: 'string' }, work: { type: 'string' } },
  });
  for (const name of ['build', 'models', 'work'])
    if (!values[name]) throw new Error(`--${name} is missing`);
  const build = resolve(values.build), work = resolve(values.work);
  mkdirSync(work, { recursive: true });
  return { root: resolve(fileURLToPath(new URL('../..', import.meta.url))), build, work, models: resolve(values.models),
           vmpack: join(build, 'bin', 'vmpack'), positionals };
}
