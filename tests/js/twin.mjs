// The twin's files, its weights, and what its functions should answer.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { layout, VmpkError } from '../../runtime/js/vmpk.mjs';

export const folder = resolve(process.argv[2] ?? '.');
export const weightsSize = 262144;

/** 3 x 2 weights at the start and 2 biases at the very end; noise between, which only the digest sees. */
export function makeWeights() {
  const bytes = new Uint8Array(weightsSize);
  for (let i = 0, state = 1; i < bytes.length; ++i) bytes[i] = (state = (state * 1103515245 + 12345) % 2 ** 31) >> 16;
  bytes.set(new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer), 0);
  bytes.set(new Uint8Array(Float32Array.of(-20, 0.5).buffer), weightsSize - 8);
  return bytes;
}
export const weights = makeWeights();

/** Where the module table begins in a wasm file. */
export const tableOffset = wasm => Buffer.from(wasm).indexOf('VMPKTBL1');

/** A twin's bytes; the packager's part, putting the weights' digest into the table, is done here. */
export function twin(name = 'twin') {
  const wasm = new Uint8Array(readFileSync(join(folder, `${name}.wasm`)));
  wasm.set(createHash('sha256').update(weights).digest(), tableOffset(wasm) + layout.header.weightsDigest);
  return wasm;
}

export const mainInputs = batch => ({
  x: { data: Float32Array.from({ length: batch * 3 }, (_, i) => i % 7 - 2), dims: [batch, 3] },
  ids: { data: BigInt64Array.from({ length: batch }, (_, i) => BigInt(i % 5) - 2n), dims: [batch] },
  flags: { data: Uint8Array.from({ length: batch }, (_, i) => i % 3 ? 1 : 0), dims: [batch] },
});

/** Small integers and halves: exact in f32, so that the results are compared with ===. */
export function mainOutputs({ x, ids, flags }) {
  const w = [1, 2, 3, 4, 5, 6], b = [-20, 0.5], [batch] = ids.dims;
  const y = Float32Array.from({ length: batch * 2 }, (_, i) => {
    const row = i >> 1, column = i & 1;
    const sum = [0, 1, 2].reduce((total, k) => total + x.data[row * 3 + k] * w[k * 2 + column], b[column]);
    return flags.data[row] ? Math.max(0, sum + Number(ids.data[row])) : 0;
  });
  return { y: { data: y, dims: [batch, 2] }, twice: { data: ids.data.map(id => 2n * id), dims: [batch] },
           not: { data: flags.data.map(flag => 1 - flag), dims: [batch] } };
}

/** Asserts that `action` throws a VmpkError with this code whose message matches all patterns. */
export async function throws(action, code, ...patterns) {
  let error;
  try {
    await action();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `${code} should have been thrown`);
  assert.ok(error instanceof VmpkError, `a VmpkError should have been thrown, not ${error?.stack ?? error}`);
  assert.equal(error.code, code, error.message);
  for (const pattern of patterns) assert.match(error.message, pattern);
}
