// The module table as untrusted input: every byte of it is damaged once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layout, load, readTable, VmpkError } from '../../runtime/js/vmpk.mjs';
import { tableOffset, throws, twin, weights } from './twin.mjs';

const wasm = twin(), at = tableOffset(wasm), { header } = layout;
const tableSize = new DataView(wasm.buffer).getUint32(at + header.tableSize, true);
const table = wasm.slice(at, at + tableSize);

/** A copy of the table in which `change` has written. */
function damaged(change) {
  const copy = table.slice();
  change(new DataView(copy.buffer), copy);
  return copy;
}

test('what the table says', async () => {
  const read = readTable(table);
  assert.equal(read.name, 'twin');
  assert.equal(read.digest, `abcd${'00'.repeat(29)}ef`);
  assert.equal(read.weights.size, weights.length);
  assert.equal(read.stackSize, 512);
  assert.deepEqual(read.dispatches, [{ name: 'linear', location: 'main', flops: 12, bytes: 0 },
                                     { name: 'relu', location: 'y', flops: 0, bytes: 48 }]);
  assert.deepEqual(read.functions.map(({ name }) => name), ['main', 'repeat', 'pair', 'answer', 'madd']);
  assert.deepEqual(read.functions[0], {
    name: 'main', arenaSize: null, dims: [{ name: 'batch', minimum: 1, maximum: 1024 }],
    inputs: [{ name: 'x', dtype: 'f32', dims: ['batch', 3] }, { name: 'ids', dtype: 'i64', dims: ['batch'] },
             { name: 'flags', dtype: 'bool', dims: ['batch'] }],
    outputs: [{ name: 'y', dtype: 'f32', dims: ['batch', 2] }, { name: 'twice', dtype: 'i64', dims: ['batch'] },
              { name: 'not', dtype: 'bool', dims: ['batch'] }] });
  assert.deepEqual(read.functions[1].outputs, [{ name: 'y', dtype: 'i32', dims: [null] }]);
  assert.deepEqual(read.functions[2].dims, [{ name: 'n', minimum: 2, maximum: null }, { name: 'm', minimum: 0, maximum: null }]);
  const module = await load(wasm, { weights });
  assert.deepEqual(module.signature.functions, read.functions);
  assert.deepEqual([module.name, module.digest, module.dispatches], [read.name, read.digest, read.dispatches]);
});

test('wrong fields are named', async () => {
  const u32 = (field, value) => view => view.setUint32(field, value, true);
  const functions = new DataView(table.buffer).getUint32(header.functions, true);
  const inputs = new DataView(table.buffer).getUint32(functions + layout.tableFunction.inputs, true);
  const dims = new DataView(table.buffer).getUint32(functions + layout.tableFunction.dims, true);
  const shape = new DataView(table.buffer).getUint32(inputs + layout.tableTensor.dims, true);
  const cases = [
    [u32(header.magic, 0), 'CORRUPT', /does not begin with VMPKTBL1/],
    [u32(header.abiVersion, 0), 'VERSION_MISMATCH', /abi version 0, this runtime reads 1/],
    [u32(header.size, 8), 'CORRUPT', /header size is 8 when it should be 160/],
    [u32(header.tableSize, tableSize + 8), 'CORRUPT', /size is \d+ when it should be \d+/],
    [u32(header.tableSize + 4, 2 ** 31), 'CORRUPT', /its size is/],
    [u32(header.functionSize, 0), 'CORRUPT', /function_size is 0 when it should be 40/],
    [u32(header.dimSize, 28), 'CORRUPT', /dim_size is 28/],
    [u32(header.functions, 2 ** 32 - 8), 'CORRUPT', /end beyond/],
    [u32(header.functions, functions + 1), 'CORRUPT', /not a multiple of 8/],
    [u32(header.functions + 4, 2 ** 32 - 1), 'CORRUPT', /end beyond/],
    [u32(header.name, tableSize), 'CORRUPT', /the name/],
    [u32(inputs + layout.tableTensor.dtype, 14), 'CORRUPT', /dtype of function 0 input 0 is 14/],
    [u32(inputs + layout.tableTensor.dims + 4, 17), 'CORRUPT', /rank of function 0 input 0 is 17/],
    [view => view.setBigInt64(shape, -3n, true), 'CORRUPT', /dim 0 of function 0 input 0 is -3/],
    [view => view.setBigInt64(shape, -(2n ** 63n), true), 'CORRUPT', /dim 0 of function 0 input 0/],
    [view => view.setBigInt64(shape + 8, 2n ** 52n, true), 'CORRUPT', /the dims of function 0 input 0/],
    [view => view.setBigInt64(dims + layout.tableDim.minimum, 2000n, true), 'CORRUPT', /bounds of function 0 dim 0/],
    [u32(functions + layout.tableFunction.inputs + 4, 0), 'CORRUPT', /no input has its dim batch/],
  ];
  for (const [change, code, pattern] of cases) await throws(() => readTable(damaged(change)), code, /table/, pattern);
  const longer = new Uint8Array(tableSize + 8);
  longer.set(table);
  await throws(() => readTable(longer), 'CORRUPT', /size is/);
});

test('every byte, damaged or cut off, is refused or harmless', () => {
  const survive = bytes => {
    try {
      readTable(bytes);
    } catch (error) {
      if (!(error instanceof VmpkError) || !['CORRUPT', 'VERSION_MISMATCH'].includes(error.code)) throw error;
    }
  };
  for (let i = 0; i < table.length; ++i) {
    for (const value of [0x00, 0x7f, 0x80, 0xff, table[i] ^ 1]) survive(damaged((_, bytes) => { bytes[i] = value; }));
    assert.throws(() => readTable(table.subarray(0, i)), VmpkError);
  }
});

test('a table with larger rows, of a later version', () => {
  // One more 8-byte word at the end of each dispatch row, and a header that says so.
  const { dispatches, dispatchSize } = header, old = new DataView(table.buffer);
  const begin = old.getUint32(dispatches, true), count = old.getUint32(dispatches + 4, true), row = layout.tableDispatch.sizeof;
  const moved = Math.ceil(tableSize / 8) * 8, larger = new Uint8Array(moved + count * (row + 8)), view = new DataView(larger.buffer);
  larger.set(table);
  for (let i = 0; i < count; ++i)
    larger.set(table.subarray(begin + i * row, begin + (i + 1) * row), moved + i * (row + 8));
  view.setUint32(dispatches, moved, true);
  view.setUint32(dispatchSize, row + 8, true);
  view.setBigUint64(header.tableSize, BigInt(larger.length), true);
  view.setUint32(header.abiVersion, 2, true);
  assert.deepEqual(readTable(larger), readTable(table));
});

test('a corrupt table inside a module', async () => {
  const broken = wasm.slice();
  broken[at] ^= 0xff;
  await throws(() => load(broken, { weights }), 'CORRUPT', /module table: it does not begin with/);
  const huge = wasm.slice();
  new DataView(huge.buffer).setBigUint64(at + header.tableSize, 2n ** 40n, true);
  await throws(() => load(huge, { weights }), 'CORRUPT', /not inside the memory/);
});
