#!/usr/bin/env node
// Executes one kind of artifact for every model and compares with onnxruntime:
//   e2e.mjs --build DIR --models DIR --work DIR KIND|pack [MODEL...]
// `pack` makes the golden outputs and packages every model first, in one call of vmpack each: for all targets, or for
// those of its row in models.json (the large nets take minutes for all).
import { join } from 'node:path';
import { context } from './context.mjs';
import { check, golden, models, pack } from './golden.mjs';
import { kinds } from './kinds.mjs';
import { runChecks } from './process.mjs';

const c = context();
const [what, ...names] = c.positionals;
const chosen = models.filter(model => names.length === 0 || names.includes(model.name));
const out = model => join(c.work, 'out', model.name);
const targets = [...new Set(Object.values(kinds).map(kind => kind.target).filter(Boolean))];
const targetsOf = model => model.targets ?? targets;

if (what === 'pack') {
  await runChecks(chosen.map(model => [`${model.name} for ${targetsOf(model).join(', ')}`, () => {
    golden(model, c.models, c.work);
    pack(c.vmpack, model, c.models, out(model), targetsOf(model));
  }]));
} else if (kinds[what]) {
  const { target } = kinds[what];
  const packaged = chosen.filter(model => !target || targetsOf(model).includes(target));
  await runChecks(packaged.map(model => [`${what}: ${model.name}`, async () => {
    const expected = golden(model, c.models, c.work);
    return check(await kinds[what].run(c, model, out(model), expected), expected.outputs);
  }]));
} else {
  console.error(`e2e.mjs: no kind '${what}'; there are: pack, ${Object.keys(kinds).join(', ')}`);
  process.exitCode = 1;
}
