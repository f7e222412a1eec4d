// Calls: results, shapes, dtypes, memory, several instances.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layout, load } from '../../runtime/js/vmpk.mjs';
import { mainInputs, mainOutputs, throws, twin, weights } from './twin.mjs';

const open = () => load(twin(), { weights });

test('the layout is that of the C compiler', async () => {
  const { instance: { exports } } = await WebAssembly.instantiate(twin());
  const view = new DataView(exports.memory.buffer), bytes = new Uint8Array(exports.memory.buffer);
  const fields = exports.layout(), inC = {};
  for (let i = 0; i < exports.layout_count(); ++i) {
    const name = view.getUint32(fields + i * 8, true);
    const text = new TextDecoder().decode(bytes.subarray(name, bytes.indexOf(0, name)));
    inC[text] = view.getUint32(fields + i * 8 + 4, true);
  }
  const inJs = Object.entries(layout).flatMap(([struct, value]) =>
    typeof value === 'number' ? [[struct, value]] : Object.entries(value).map(([key, at]) => [`${struct}.${key}`, at]));
  assert.deepEqual(Object.fromEntries(inJs), inC);
});

test('dispatches, symbolic dims, several dtypes', async () => {
  const module = await open();
  for (const batch of [1, 3, 1024, 2]) {
    const inputs = mainInputs(batch);
    assert.deepEqual(await module.run(inputs), mainOutputs(inputs));
    assert.deepEqual(module.runSync(inputs, { function: 'main' }), mainOutputs(inputs));
  }
});

test('embedded weights', async () => {
  const module = await load(twin('twin.embedded')), inputs = mainInputs(4);
  assert.equal(module.weights.embedded, true);
  assert.deepEqual(await module.run(inputs), mainOutputs(inputs));
});

test('computed dims and arenas', async () => {
  const module = await open();
  for (const n of [0, 1, 5, 100000, 3]) {
    const data = Int32Array.from({ length: n }, (_, i) => i * i);
    const { y } = await module.run({ x: { data, dims: [n] } }, { function: 'repeat' });
    assert.deepEqual(y, { data: Int32Array.from({ length: 2 * n }, (_, i) => data[i % n]), dims: [2 * n] });
  }
});

test('arrays alone where dims are static', async () => {
  const { y } = await (await open()).run({ x: Float32Array.of(1, 2, 3, -4) }, { function: 'madd' });
  assert.deepEqual(y, { data: Float32Array.of(2, 6, 12, 12), dims: [4] });
});

test('outputs are copies, or views when asked', async () => {
  const module = await open(), inputs = mainInputs(2), expected = mainOutputs(inputs);
  const copy = module.runSync(inputs), view = module.runSync(inputs, { view: true });
  assert.notEqual(copy.y.data.buffer, module.memory.buffer);
  assert.equal(view.y.data.buffer, module.memory.buffer);
  assert.deepEqual(view, expected);
  module.runSync({ ...inputs, flags: { data: new Uint8Array(2), dims: [2] } });
  assert.deepEqual(copy, expected);
  assert.deepEqual(view.y.data, new Float32Array(4));
});

test('a bool is 0 or 1', async () => {
  const inputs = mainInputs(2);
  const { y, not } = (await open()).runSync({ ...inputs, flags: { data: Uint8Array.of(255, 0), dims: [2] } });
  assert.deepEqual(not.data, Uint8Array.of(0, 1));
  assert.deepEqual(y, mainOutputs({ ...inputs, flags: { data: Uint8Array.of(1, 0), dims: [2] } }).y);
});

test('inputs in place', async () => {
  const instance = await (await open()).instantiate(), { x, ids, flags } = mainInputs(5);
  instance.inputView('x', [5, 3]).set(x.data);
  instance.inputView('ids', [5]).set(ids.data);
  instance.inputView('flags', [5]).set(flags.data);
  assert.deepEqual(instance.runSync(), mainOutputs({ x, ids, flags }));
  const bytes = instance.module.memory.buffer.byteLength, view = instance.inputView('x', [5, 3]);
  assert.deepEqual(view, x.data, 'contents are kept for the same dims');
  view.fill(1);
  assert.deepEqual(instance.runSync().y, mainOutputs({ x: { data: view }, ids, flags }).y);
  assert.equal(view.length, 15, 'the call did not grow the memory');
  assert.deepEqual(instance.runSync({ x: { data: view, dims: [5, 3] } }).y, mainOutputs({ x: { data: view }, ids, flags }).y);
  assert.equal(instance.module.memory.buffer.byteLength, bytes);
  await throws(() => instance.runSync({ x: mainInputs(4).x }), 'SHAPE_MISMATCH', /input ids, dim 0 \(batch\): size is 5 .* 4/);
  await throws(() => instance.inputView('x', [5, 4]), 'SHAPE_MISMATCH', /input x, dim 1: size is 4 when it should be 3/);
  await throws(() => instance.inputView('z', [1]), 'NOT_FOUND', /no input z/, /x, ids, flags/);
});

test('a single input: the view lives through the call, also when the call needs memory', async () => {
  const instance = await (await open()).instantiate(), n = 200000;
  const view = instance.inputView('x', [n], { function: 'repeat' });
  view.forEach((_, i) => { view[i] = i; });
  const { y } = instance.runSync({}, { function: 'repeat', view: true });
  assert.equal(view.length, n);
  assert.equal(y.data[n + 7], 7);
  const again = instance.runSync({ x: { data: y.data, dims: [2 * n] } }, { function: 'repeat' }); // grows the memory
  assert.deepEqual([again.y.data.length, again.y.data[3 * n + 9]], [4 * n, 9]);
  await throws(() => instance.runSync({ x: { data: view, dims: [n] } }, { function: 'repeat' }), 'INVALID_ARGUMENT',
               /before the memory grew/);
});

test('repeated runs do not grow memory', async () => {
  const module = await open(), big = mainInputs(1024), small = mainInputs(3);
  module.runSync(big);
  const bytes = module.memory.buffer.byteLength;
  for (let i = 0; i < 200; ++i) module.runSync(i % 2 ? big : small);
  for (let i = 0; i < 50; ++i) {
    const instance = await module.instantiate();
    instance.runSync(small);
    instance.dispose();
  }
  assert.ok(module.memory.buffer.byteLength - bytes <= 65536);
});

test('memory grows by whole pages, no more than needed', async () => {
  const module = await open(), before = module.memory.buffer.byteLength, n = 1 << 20;
  module.runSync({ x: { data: new Int32Array(n), dims: [n] } }, { function: 'repeat' });
  const grown = module.memory.buffer.byteLength - before;
  assert.ok(grown <= n * 4 * 4 + 65536, `${grown} bytes`); // the input, the arena and twice as much for the output
});

test('several instances and modules', async () => {
  const [one, other] = [await open(), await open()], inputs = [mainInputs(2), mainInputs(9), mainInputs(4)];
  const instances = [await one.instantiate(), await one.instantiate(), await other.instantiate()];
  const views = instances.map((instance, i) => instance.runSync(inputs[i], { view: true }));
  const results = await Promise.all(instances.map((instance, i) => instance.run(inputs[i])));
  results.forEach((result, i) => assert.deepEqual(result, mainOutputs(inputs[i])));
  assert.deepEqual(views[2], mainOutputs(inputs[2]));
  instances[0].dispose();
  instances[0].dispose();
  await throws(() => instances[0].runSync(inputs[0]), 'INVALID_ARGUMENT', /disposed/);
  assert.deepEqual(instances[1].runSync(inputs[1]), mainOutputs(inputs[1]));
  one.dispose();
  await throws(() => instances[1].runSync(inputs[1]), 'INVALID_ARGUMENT', /module twin is disposed/);
  await throws(() => one.runSync(inputs[1]), 'INVALID_ARGUMENT', /module twin is disposed/);
  instances[1].dispose();
  assert.deepEqual(other.runSync(inputs[0]), mainOutputs(inputs[0]));
});

test('wrong inputs are named', async () => {
  const module = await open(), good = mainInputs(2);
  const cases = [
    [{ x: { data: new Float32Array(8), dims: [2, 4] } }, 'SHAPE_MISMATCH', /input x, dim 1: size is 4 when it should be 3/],
    [{ x: { data: new Float32Array(6), dims: [6] } }, 'SHAPE_MISMATCH', /input x: rank is 1 when it should be 2: \[batch, 3\]/],
    [{ ids: { data: new BigInt64Array(3), dims: [3] } }, 'SHAPE_MISMATCH',
     /input ids, dim 0 \(batch\): size is 3 when it should be 2 as in input x, dim 0/],
    [mainInputs(1025), 'OUT_OF_RANGE', /input x, dim 0 \(batch\): size is 1025 when it should be 1 to 1024/],
    [mainInputs(0), 'OUT_OF_RANGE', /size is 0/],
    [{ x: { data: new Float64Array(6), dims: [2, 3] } }, 'INVALID_ARGUMENT', /input x: data is Float64Array .* Float32Array \(f32\)/],
    [{ ids: { data: new Int32Array(2), dims: [2] } }, 'INVALID_ARGUMENT', /input ids: data is Int32Array .* BigInt64Array \(i64\)/],
    [{ x: { data: [1, 2, 3, 4, 5, 6], dims: [2, 3] } }, 'INVALID_ARGUMENT', /input x: data is object/],
    [{ x: { data: null, dims: [2, 3] } }, 'INVALID_ARGUMENT', /input x: data is null/],
    [{ x: null }, 'INVALID_ARGUMENT', /input x/],
    [{ x: { data: new DataView(new ArrayBuffer(24)), dims: [2, 3] } }, 'INVALID_ARGUMENT', /input x: data is DataView/],
    [{ x: { data: new Float32Array(5), dims: [2, 3] } }, 'INVALID_ARGUMENT', /input x: data has 5 elements .* 6/],
    [{ x: new Float32Array(6) }, 'INVALID_ARGUMENT', /input x: its dims are missing; they are \[batch, 3\]/],
    [{ x: { data: new Float32Array(6), dims: [2.5, 3] } }, 'INVALID_ARGUMENT', /input x, dim 0: 2.5 is no size/],
    [{ x: { data: new Float32Array(6), dims: [-2, 3] } }, 'INVALID_ARGUMENT', /input x, dim 0: -2 is no size/],
    [{ image: good.x }, 'NOT_FOUND', /function main has no input image, only x, ids, flags/],
  ];
  for (const [wrong, code, pattern] of cases) await throws(() => module.runSync({ ...good, ...wrong }), code, pattern);
  await throws(() => module.runSync({ x: good.x, ids: good.ids }), 'INVALID_ARGUMENT', /input flags is missing/);
  await throws(() => module.run(good, { function: 'predict' }), 'NOT_FOUND', /no function predict, only main, repeat/);
  const pair = (a, b) => ({ a: { data: new Float32Array(a[0] * a[1]), dims: a }, b: { data: new Float32Array(b[0] * b[1]), dims: b } });
  await throws(() => module.runSync(pair([2, 3], [2, 4]), { function: 'pair' }), 'SHAPE_MISMATCH', /input b, dim 1 \(m\): size is 4 .* 3/);
  await throws(() => module.runSync(pair([1, 3], [1, 3]), { function: 'pair' }), 'OUT_OF_RANGE', /size is 1 .* at least 2/);
  assert.deepEqual(module.runSync(pair([2, 0], [2, 0]), { function: 'pair' }).sum.dims, [2, 0]);
  assert.deepEqual(module.runSync(good), mainOutputs(good), 'it still works');
});

test('the module fails, then traps', async () => {
  const module = await open(), answer = status => module.runSync({ what: Int32Array.of(status) }, { function: 'answer' });
  assert.deepEqual(answer(0).echo.data, Int32Array.of(0));
  await throws(() => answer(6), 'UNSUPPORTED', /function answer answered UNSUPPORTED/);
  await throws(() => answer(11), 'INTERNAL', /function answer answered INTERNAL/);
  await throws(() => answer(999), 'INTERNAL', /function answer answered 999/);
  assert.deepEqual(answer(0).echo.data, Int32Array.of(0));
  await throws(() => answer(-1), 'INTERNAL', /function answer trapped: unreachable/);
  await throws(() => answer(0), 'INTERNAL', /trapped before .* load it again/);
});

test('more memory than there is', async () => {
  const instance = await (await open()).instantiate();
  await throws(() => instance.inputView('x', [2 ** 40], { function: 'repeat' }), 'OUT_OF_MEMORY', /input x: it needs/);
  const bytes = instance.module.memory.buffer.byteLength;
  await throws(() => instance.inputView('x', [2 ** 28], { function: 'repeat' }), 'OUT_OF_MEMORY',
               /function repeat: tensors and arena need 4294967296 bytes/);
  assert.equal(instance.module.memory.buffer.byteLength, bytes, 'all sizes are known before any memory is taken');
  const { y } = instance.runSync({ x: { data: Int32Array.of(7), dims: [1] } }, { function: 'repeat' });
  assert.deepEqual(y.data, Int32Array.of(7, 7));
});
