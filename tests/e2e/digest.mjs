#!/usr/bin/env node
// The shared module is the same bytes whatever targets are asked for, in whatever folder, and its digest is in every
// artifact; all artifacts are the same bytes when they are made again: digest.mjs --build DIR --models DIR --work DIR
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { context } from './context.mjs';
import { models, pack } from './golden.mjs';
import { expect, run, runChecks } from './process.mjs';

const c = context();
const work = join(c.work, 'digest');
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
const model = models.find(m => m.name === 'mlp');
const sha256 = path => createHash('sha256').update(readFileSync(path)).digest('hex');
const files = folder => readdirSync(folder, { withFileTypes: true }).flatMap(
  entry => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]));

/** Every digest that `inspect` finds below `path`. */
const digests = path => {
  const report = JSON.parse(run(c.vmpack, ['inspect', '--json', path]));
  return report.variants.map(variant => variant.digest).filter(Boolean);
};
const targets = ['ios-static', 'android-so', 'web-wasm', 'web-static', 'web-side', 'linux-static', 'linux-so', 'macos-static'];

const bitcode = join(work, 'module.bc');
run(c.vmpack, [join(c.models, model.file), '--emit=bitcode', '--name', model.name, '--dim', `N=${model.pack.N}`, '-o', bitcode]);
const expected = sha256(bitcode);

await runChecks([
  ['one digest in every artifact of one call', () => {
    const all = pack(c.vmpack, model, c.models, join(work, 'all'), targets);
    for (const target of targets) {
      const found = digests(join(all, target));
      expect(found.length > 0, `${target}: no digest`);
      for (const digest of found) expect(digest === expected, `${target}: digest ${digest} when it should be ${expected}`);
    }
  }],
  ...targets.map(target => [`${target} alone is the same bytes`, () => {
    const alone = pack(c.vmpack, model, c.models, join(work, 'alone', target), [target]);
    for (const file of files(join(alone, target))) {
      const other = join(work, 'all', relative(alone, file));
      expect(sha256(file) === sha256(other), `${relative(alone, file)} differs`);
    }
  }]),
]);
