#!/usr/bin/env node
// What users get wrong ends in words, exit status 1 and no file: bad_input.mjs --build DIR --models DIR --work DIR
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { context } from './context.mjs';
import { attempt, expect, run, runChecks } from './process.mjs';

const options = context();
const model = join(options.models, 'mlp.onnx');
const work = join(options.work, 'bad_input');
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });

/** The program refuses: exit status 1, a message that holds each of `words`, and nothing new in `folder`. */
function refuses(args, words, folder = work) {
  const before = readdirSync(folder);
  const result = attempt(options.vmpack, args);
  expect(result.status === 1, `exit ${result.status ?? result.signal} when it should be 1: ${result.stderr}`);
  expect(result.stderr.startsWith('vmpack: error: '), `says: ${result.stderr}`);
  for (const word of words) expect(result.stderr.includes(word), `does not say '${word}': ${result.stderr}`);
  const left = readdirSync(folder).filter(name => !before.includes(name));
  expect(left.length === 0, `leaves ${left}`);
}

const packed = (path, target = 'linux-so') => [path, `--target=${target}`, '-o', join(work, 'out')];

/** Damaged bytes end in exit 0 (the damage did not matter) or 1 with a message, never in a crash. */
function survives(path, args) {
  const result = attempt(options.vmpack, args(path), { timeout: 120000 });
  expect(result.status === 0 || result.status === 1, `exit ${result.status ?? result.signal}: ${result.stderr}`);
  if (result.status === 1) expect(result.stderr.startsWith('vmpack: error: '), `says: ${result.stderr}`);
  return result.status;
}

/** `count` numbers spread over [0, limit), the same in each run. */
const spread = (count, limit) => Array.from({ length: count }, (_, i) => Math.floor(((i * 0.6180339887) % 1) * limit));

function damagedCopies(source, suffix, check) {
  const bytes = readFileSync(source), path = join(work, `damaged${suffix}`);
  for (const size of [0, 1, 7, ...spread(12, bytes.length)]) {
    writeFileSync(path, bytes.subarray(0, size));
    check(path, `cut to ${size} bytes`);
  }
  // Headers and structure stand in front, where flips hurt most.
  for (const at of [...spread(20, Math.min(bytes.length, 1024)), ...spread(8, bytes.length)]) {
    const copy = Buffer.from(bytes);
    copy[at] ^= 1 << at % 8;
    writeFileSync(path, copy);
    check(path, `bit flipped in byte ${at}`);
  }
  rmSync(path);
}

const emitting = path => [path, '--emit=imported', '-o', '/dev/null/none'];
const importing = path => [path, '--emit=imported', '-o', '-'];

const small = join(work, 'small.mlir');
writeFileSync(small, `func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tosa.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
`);

function bundlePath() {
  const folder = join(work, 'bundle');
  if (!existsSync(folder)) run(options.vmpack, [model, '--target=android-so', '-o', folder, '--name', 'm', '--dim', 'N=1']);
  const target = join(folder, 'android-so');
  const bundle = readdirSync(target).find(name => name.endsWith('.vmpb'));
  expect(bundle, `no bundle in ${readdirSync(target)}`);
  return join(target, bundle);
}

await runChecks([
  ['a missing file', () => refuses(packed(join(work, 'none.onnx')), ['none.onnx'])],
  ['a folder for a model', () => refuses(packed(work), [work])],
  ['an empty file', () => {
    const path = join(options.work, 'empty.onnx');
    writeFileSync(path, '');
    refuses(packed(path), ['empty.onnx']);
  }],
  ['an unknown target', () => refuses(packed(model, 'linux-so,amiga-hunk'), ['amiga-hunk', 'android-so', 'ios-static', 'web-wasm'])],
  ['an unknown option', () => {
    const result = attempt(options.vmpack, [...packed(model), '--fast']);
    expect(result.status === 1 && result.stderr.includes('--fast'), `exit ${result.status}: ${result.stderr}`);
  }],
  ['an unwritable folder', () => refuses([model, '--target=linux-so', '-o', '/proc/vmpack'], ['/proc'])],
  ['a file where the folder should be', () => refuses([model, '--target=linux-so', '-o', model], [model])],
  ['an unwritable file', () => refuses(emitting(model), ['/dev/null/none'])],
  ['two models of one name', () => {
    mkdirSync(join(work, 'twin'));
    const twin = join(work, 'twin', 'mlp.onnx');
    copyFileSync(model, twin);
    refuses([model, twin, '--target=linux-so', '-o', join(work, 'out')], [model, twin, "'mlp'"]);
  }],
  ['an unknown dim', () => refuses([...packed(model), '--dim', 'batch=1'], ['batch'])],
  ['an artifact that is too large', () => refuses([...packed(model), '--max-size', '1000'], ['linux-so', '1000'])],
  ['a full disk', () => {
    const disk = join(work, 'disk');
    mkdirSync(disk);
    run('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk]);
    try {
      refuses([model, '--target=linux-so', '-o', join(disk, 'out')], ['No space left'], disk);
    } finally {
      run('umount', [disk]);
    }
  }],
  ['a damaged ONNX file', () => damagedCopies(model, '.onnx', path => survives(path, importing))],
  ['a damaged MLIR text', () => damagedCopies(small, '.mlir', path => survives(path, importing))],
  ['MLIR that does not verify', () => {
    const path = join(options.work, 'wrong.mlir');
    writeFileSync(path, 'func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {\n  return %x : tensor<4xf32>\n}\n');
    refuses(packed(path), ['wrong.mlir:2:3']);
  }],
  ['a damaged bundle', () => {
    const bundle = bundlePath(), good = join(work, 'good'), folder = join(work, 'damaged');
    const running = (path, output) => ['run', path, '--output-dir', output];
    run(options.vmpack, running(bundle, good));
    const expected = readFileSync(join(good, 'output_0.npy'));
    damagedCopies(bundle, '.vmpb', (path, what) => {
      survives(path, p => ['inspect', p]);
      // The loader reads what it needs: damage elsewhere, in another machine's code, may go unseen.
      if (survives(path, p => running(p, folder)) === 0)
        expect(readFileSync(join(folder, 'output_0.npy')).equals(expected), `${what}: runs, and computes something else`);
    });
  }],
  ['an input that does not fit', () => {
    const signature = ['run', model, '--dim', 'N=1', '--output-dir', join(work, 'run')];
    refuses([...signature, '--input', `nothing=${small}`], ['nothing']);
    refuses([...signature, '--input', `input=${small}`], ['small.mlir']);
  }],
]);
