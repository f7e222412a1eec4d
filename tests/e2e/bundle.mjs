// Takes a variant's code and the weights out of a bundle (schemas/bundle.fbs), apart from the runtime's own loader.
import { readFileSync } from 'node:fs';
import { attempt } from './process.mjs';

/** A flatbuffers table: field(i) answers the position of the i-th field, or 0. */
class Table {
  constructor(bytes, at) { Object.assign(this, { bytes, at }); }
  field(i) {
    const vtable = this.at - this.bytes.readInt32LE(this.at), slot = 4 + 2 * i;
    const offset = slot < this.bytes.readUInt16LE(vtable) ? this.bytes.readUInt16LE(vtable + slot) : 0;
    return offset && this.at + offset;
  }
  #target(i) { const at = this.field(i); return at && at + this.bytes.readUInt32LE(at); }
  table(i) { const at = this.#target(i); return at && new Table(this.bytes, at); }
  vector(i) {
    const at = this.#target(i);
    return at ? this.bytes.subarray(at + 4, at + 4 + this.bytes.readUInt32LE(at)) : null;
  }
  tables(i) {
    const at = this.#target(i);
    return Array.from({ length: this.bytes.readUInt32LE(at) }, (_, k) => {
      const slot = at + 4 + 4 * k;
      return new Table(this.bytes, slot + this.bytes.readUInt32LE(slot));
    });
  }
}

/** {code, weights}: the shared object of `abi` unpacked, and the weights (null when there are none inside). */
export function androidVariant(path, abi) {
  const bytes = readFileSync(path);
  const bundle = new Table(bytes, bytes.readUInt32LE(0));
  const variant = bundle.tables(4).find(v => v.vector(0).toString() === abi);
  if (!variant) throw new Error(`${path}: no variant for ${abi}`);
  const compression = variant.field(2), data = variant.vector(4);
  let code = data;
  if (compression && bytes[compression] === 1) {
    const { status, stdout, stderr } = attempt('zstd', ['-d', '-c'], { input: data, encoding: 'buffer' });
    if (status !== 0) throw new Error(`zstd: ${stderr}`);
    code = stdout;
  }
  const weights = bundle.table(5);
  return { code, weights: weights && weights.vector(3) };
}
