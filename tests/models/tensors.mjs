// .npy files and seeded tensors, for the scripts that compare vmpack with onnxruntime.
import { readFileSync, writeFileSync } from 'node:fs';

// numpy descriptor, onnxruntime type, JavaScript view
const TYPES = [
  ['<f4', 'float32', Float32Array], ['<f8', 'float64', Float64Array], ['<i8', 'int64', BigInt64Array],
  ['<i4', 'int32', Int32Array], ['|u1', 'uint8', Uint8Array], ['|i1', 'int8', Int8Array], ['|b1', 'bool', Uint8Array],
];

/** Reads version 1 and 2 files in C order: {type, dims, data}. */
export function readNpy(path) {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY') throw new Error(`${path}: not a .npy file`);
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10, size = wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', start, start + size);
  const row = TYPES.find(([descr]) => header.includes(`'${descr}'`));
  if (!row || header.includes("'fortran_order': True")) throw new Error(`${path}: unsupported header ${header}`);
  const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(',').map(s => s.trim()).filter(Boolean).map(Number);
  const body = bytes.subarray(start + size);
  const aligned = body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength);
  return { type: row[1], dims, data: new row[2](aligned) };
}

/** Writes a version 1 file. */
export function writeNpy(path, { type, dims, data }) {
  const descr = TYPES.find(row => row[1] === type)?.[0];
  if (!descr) throw new Error(`${path}: no .npy type for ${type}`);
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims.join(', ')}${dims.length === 1 ? ',' : ''}), }`;
  header = header.padEnd(Math.ceil((10 + header.length + 1) / 64) * 64 - 11) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(header.length, 8);
  writeFileSync(path, Buffer.concat([head, Buffer.from(header, 'latin1'),
                                     Buffer.from(data.buffer, data.byteOffset, data.byteLength)]));
}

/** The generator of `vmpack run --seed` (packager/tool/Tensors.h says the same in words). */
export function seededTensor(type, dims, seed, ordinal) {
  const count = dims.reduce((a, b) => a * b, 1);
  const data = new (TYPES.find(row => row[1] === type)[2])(count);
  const base = (Math.imul(seed, 0x9e3779b9) + Math.imul(ordinal, 0x85ebca6b)) >>> 0;
  for (let i = 0; i < count; ++i) {
    let x = (base + i) >>> 0;
    x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
    x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
    x = (x ^ (x >>> 16)) >>> 0;
    if (type.startsWith('float')) data[i] = (x >>> 8) / 8388608 - 1;
    else if (type === 'bool') data[i] = x & 1;
    else data[i] = type === 'int64' ? BigInt(x % 8) : x % 8;
  }
  return { type, dims, data };
}

/** The worst element of `got` against `want`: {ok, worst, index}; |a-b| <= 1e-4 + 1e-4*|b|, exact for integers. */
export function compareTensors(got, want) {
  if (got.type !== want.type || got.dims.join() !== want.dims.join())
    return { ok: false, why: `is ${got.type}[${got.dims}] when it should be ${want.type}[${want.dims}]` };
  const float = want.type.startsWith('float');
  let worst = 0, index = 0, ok = true;
  for (let i = 0; i < want.data.length; ++i) {
    const a = Number(got.data[i]), b = Number(want.data[i]);
    const error = a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : Math.abs(a - b);
    if (!(error <= (float ? 1e-4 + 1e-4 * Math.abs(b) : 0))) ok = false;
    if (!(error <= worst)) { worst = error; index = i; }
  }
  return { ok, worst, index, why: `element ${index} is ${got.data[index]} when it should be ${want.data[index]}` };
}
