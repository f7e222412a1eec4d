#!/usr/bin/env node
// The README's first command: one real model, three platforms, each artifact executed and compared with onnxruntime.
//   demo.mjs --build DIR --models DIR --work DIR
import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { context } from './context.mjs';
import { check, golden, models, pack } from './golden.mjs';
import { kinds } from './kinds.mjs';

const c = context();
const model = models.find(m => m.name === 'ppocr_cls');
console.log(`demo: onnxruntime computes the expected output of ${model.file}`);
const expected = golden(model, c.models, c.work);
console.log('demo: vmpack compiles it once, for ios-static, android-so and web-wasm');
const out = pack(c.vmpack, model, c.models, join(c.work, 'out'), ['ios-static', 'android-so', 'web-wasm']);

const files = folder => readdirSync(folder, { withFileTypes: true }).flatMap(
  entry => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]));
for (const file of files(out)) console.log(`${String(statSync(file).size).padStart(10)}  ${relative(process.cwd(), file)}`);

const rows = [];
for (const name of ['ios-static', 'android-so', 'android-bundle', 'wasm-node', 'wasm-chromium']) {
  const kind = kinds[name];
  console.log(`demo: executes ${name} (${kind.how})`);
  try {
    rows.push([name, kind.how, check(await kind.run(c, model, out, expected), expected.outputs)]);
  } catch (error) {
    process.exitCode = 1;
    rows.push([name, kind.how, `WRONG: ${error.message}`]);
  }
}
console.log('\n| artifact | executed by | against onnxruntime |\n|---|---|---|');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
console.log(process.exitCode ? '\ndemo: an artifact is wrong' : '\ndemo: every artifact computes what onnxruntime computes');
