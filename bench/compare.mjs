#!/usr/bin/env node
// Compares vmpack with onnxruntime-node on this machine, in one run and one thread: see README.md beside this file.
//   compare.mjs --vmpack PROGRAM --models DIR [--rounds N] [--iterations N] [--json FILE] [--markdown FILE] [NAME...]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compareTensors, readNpy, seededTensor, writeNpy } from '../tests/models/tensors.mjs';

const ort = createRequire(new URL('../tests/package.json', import.meta.url))('onnxruntime-node');
const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    vmpack: { type: 'string', default: 'build/release/bin/vmpack' }, models: { type: 'string', default: 'build/models' },
    rounds: { type: 'string', default: '5' }, iterations: { type: 'string', default: '20' },
    json: { type: 'string' }, markdown: { type: 'string' },
  },
});
const rounds = Number(options.rounds), iterations = Number(options.iterations);
const table = JSON.parse(readFileSync(new URL('../tests/models/models.json', import.meta.url)));

const median = values => {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** The inputs that both sides get, and their files for vmpack. */
function makeInputs(session, model, folder) {
  return session.inputMetadata.map(({ name, type, shape }, ordinal) => {
    const tensor = seededTensor(type, shape.map(d => (typeof d === 'number' ? d : model.dims[d])), 1, ordinal);
    const file = join(folder, `input_${ordinal}.npy`);
    writeNpy(file, tensor);
    return { name, file, tensor };
  });
}

async function timeOnnxruntime(session, feeds) {
  const times = [];
  for (let i = 0; i <= iterations; ++i) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - start) / 1e6);
  }
  return median(times.slice(1));
}

async function compareModel(model, folder) {
  const path = join(options.models, model.file);
  const dims = Object.entries(model.dims).flatMap(([name, value]) => ['--dim', `${name}=${value}`]);
  const session = await ort.InferenceSession.create(
    path, { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', logSeverityLevel: 3 });
  const inputs = makeInputs(session, model, folder);
  const feeds = Object.fromEntries(
    inputs.map(({ name, tensor }) => [name, new ort.Tensor(tensor.type, tensor.data, tensor.dims)]));
  const inputFlags = inputs.flatMap(({ name, file }) => ['--input', `${name}=${file}`]);

  const wanted = await session.run(feeds);
  execFileSync(options.vmpack, ['run', path, ...dims, ...inputFlags, '--output-dir', folder]);
  for (const [i, name] of session.outputNames.entries()) {
    const result = compareTensors(readNpy(join(folder, `output_${i}.npy`)), wanted[name]);
    if (!result.ok) throw new Error(`${model.name}: output ${name}: ${result.why}`);
  }

  // Interleaved, so that a machine that slows down slows both.
  const ours = [], theirs = [];
  let report;
  for (let round = 0; round < rounds; ++round) {
    theirs.push(await timeOnnxruntime(session, feeds));
    report = JSON.parse(execFileSync(options.vmpack, ['bench', path, ...dims, ...inputFlags, '--threads', '1',
                                                      '--iterations', String(iterations), '--json']));
    ours.push(report.median_ms);
  }
  await session.release();
  const row = { name: model.name, vmpack_ms: median(ours), onnxruntime_ms: median(theirs),
                peak_rss_bytes: report.peak_rss_bytes };
  return { ...row, ratio: row.vmpack_ms / row.onnxruntime_ms };
}

function markdown(rows, mean) {
  const lines = rows.map(r => `| ${r.name} | ${r.vmpack_ms.toFixed(3)} | ${r.onnxruntime_ms.toFixed(3)} | ${r.ratio.toFixed(2)} |`);
  return ['| model | vmpack ms | onnxruntime ms | ratio |', '|---|---:|---:|---:|', ...lines,
          `| geometric mean | | | ${mean.toFixed(2)} |`, ''].join('\n');
}

const folder = mkdtempSync(join(tmpdir(), 'vmpack-bench-'));
try {
  const rows = [];
  for (const model of table.filter(m => names.length === 0 || names.includes(m.name))) {
    rows.push(await compareModel(model, folder));
    console.error(`${model.name}: ${rows.at(-1).ratio.toFixed(2)} of onnxruntime's time`);
  }
  if (rows.length === 0) throw new Error(`no such model; there are: ${table.map(m => m.name).join(', ')}`);
  const mean = Math.exp(rows.reduce((sum, r) => sum + Math.log(r.ratio), 0) / rows.length);
  const report = markdown(rows, mean);
  process.stdout.write(report);
  if (options.markdown) writeFileSync(options.markdown, report);
  if (options.json) writeFileSync(options.json, JSON.stringify({ rounds, iterations, threads: 1, rows, geometric_mean: mean }, null, 1) + '\n');
} catch (error) {
  console.error(`compare.mjs: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
