// The models, their golden inputs and outputs, and the comparison that all artifact kinds share.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compareTensors, readNpy } from '../models/tensors.mjs';
import { run } from './process.mjs';

export const models = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));

/** Golden tensors of a model, made by onnxruntime the first time: {inputs: [{name, file, tensor}], outputs: [...]}. */
export function golden(model, modelsDir, workDir) {
  const root = join(workDir, 'golden'), folder = join(root, model.name);
  if (!existsSync(join(folder, 'signature.json')))
    run(process.execPath, [new URL('../models/golden.mjs', import.meta.url).pathname, modelsDir, root, model.name]);
  const signature = JSON.parse(readFileSync(join(folder, 'signature.json')));
  const load = kind => signature[`${kind}s`].map((name, i) => {
    const file = join(folder, `${kind}_${i}.npy`);
    return { name, file, tensor: readNpy(file) };
  });
  return { inputs: load('input'), outputs: load('output') };
}

/** Packages a model for `targets` into a fresh folder, which is answered. */
export function pack(vmpack, model, modelsDir, folder, targets, extra = []) {
  rmSync(folder, { recursive: true, force: true });
  const dims = Object.entries(model.pack).flatMap(([name, bounds]) => ['--dim', `${name}=${bounds}`]);
  run(vmpack, [join(modelsDir, model.file), `--target=${targets.join(',')}`, '-o', folder, '--name', model.name, ...dims, ...extra]);
  return folder;
}

/** Throws unless `got` (tensors in the signature's order) are the golden outputs; answers the worst error in words. */
export function check(got, outputs) {
  if (got.length !== outputs.length) throw new Error(`${got.length} outputs when there should be ${outputs.length}`);
  let worst = 0;
  outputs.forEach(({ name, tensor }, i) => {
    const result = compareTensors(got[i], tensor);
    if (!result.ok) throw new Error(`output ${name}: ${result.why}`);
    worst = Math.max(worst, result.worst);
  });
  return `largest error ${worst.toExponential(1)}`;
}

/** The inputs as raw files for tests/e2e/host.c: arguments FILE:DIM,DIM,... */
export function rawInputs(inputs, folder) {
  mkdirSync(folder, { recursive: true });
  return inputs.map(({ tensor }, i) => {
    const file = join(folder, `input_${i}.raw`), { buffer, byteOffset, byteLength } = tensor.data;
    writeFileSync(file, Buffer.from(buffer, byteOffset, byteLength));
    return `${file}:${tensor.dims.join(',')}`;
  });
}

/** Raw bytes as tensors of the types and dims of `outputs`, one after the other. */
export function tensorsOfBytes(bytes, outputs) {
  let at = bytes.byteOffset;
  const end = at + bytes.byteLength;
  const tensors = outputs.map(({ tensor: { type, dims, data } }) => {
    if (at + data.byteLength > end) throw new Error(`${bytes.byteLength} bytes of output are too few`);
    const copy = new data.constructor(bytes.buffer.slice(at, at += data.byteLength));
    return { type, dims, data: copy };
  });
  if (at !== end) throw new Error(`${end - at} bytes of output are too many`);
  return tensors;
}

/** What tests/e2e/host.c printed and wrote, as tensors: lines `output I TYPE DIM,DIM,... FILE`. */
export function rawOutputs(text) {
  const types = { f32: ['float32', Float32Array], f64: ['float64', Float64Array], i64: ['int64', BigInt64Array],
                  i32: ['int32', Int32Array], i8: ['int8', Int8Array], u8: ['uint8', Uint8Array], bool: ['bool', Uint8Array] };
  return text.split('\n').filter(line => line.startsWith('output ')).map(line => {
    const [, , dtype, dims, file] = line.split(' ');
    const bytes = readFileSync(file), [type, view] = types[dtype];
    const data = new view(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    return { type, dims: dims === '-' ? [] : dims.split(',').map(Number), data };
  });
}
