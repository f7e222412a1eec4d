// vmpk.mjs - runs a compiled model (a WebAssembly module made by vmpack) in Node 18 and later and in browsers.
//
//   load(source) ──► Module: signature, digest, one wasm memory with the weights
//                      └─ instantiate() ──► Instance: arena and tensors inside that memory; run, inputView
//
// This is the host's side of vmpk/abi.h: `layout` below holds the byte offsets of its structs, which are the same on
// all targets (little-endian, pointers in 8-byte slots). The module has no mutable state, so all instances of a module
// share its code and weights. Compiling is asynchronous; calls run in the calling thread and may be synchronous.

/** Byte offsets and sizes of the structs of vmpk/abi.h. */
export const layout = {
  abiVersion: 1, alignment: 64, maxRank: 16,
  buffer: { data: 0, size: 8, sizeof: 16 },
  host: { size: 0, abiVersion: 4, sizeof: 64 }, // every function stays NULL: the module runs its grids itself
  call: { size: 0, function: 4, host: 8, arena: 16, arenaSize: 24, weights: 32, imports: 40, dims: 48, inputs: 56,
          outputs: 64, sizeof: 72 },
  measured: { size: 0, arenaSize: 8, outputDims: 16, sizeof: 24 },
  entry: { size: 0, abiVersion: 4, table: 8, tableSize: 16, weights: 24, measure: 32, invoke: 40, sizeof: 48 },
  header: { magic: 0, size: 8, abiVersion: 12, tableSize: 16, digest: 24, weightsDigest: 56, weightsSize: 88,
            stackSize: 96, name: 104, functions: 112, dispatches: 120, imports: 128, functionSize: 136,
            dispatchSize: 140, importSize: 144, tensorSize: 148, dimSize: 152, sizeof: 160 },
  tableFunction: { name: 0, dims: 8, inputs: 16, outputs: 24, arenaSize: 32, sizeof: 40 },
  tableDim: { name: 0, minimum: 8, maximum: 16, sizeof: 24 },
  tableTensor: { name: 0, dims: 8, dtype: 16, sizeof: 24 },
  tableDispatch: { name: 0, location: 8, flops: 16, bytes: 24, sizeof: 32 },
  tableImport: { name: 0, version: 8, required: 12, sizeof: 16 },
};

// Rows in the order of VMPK_STATUS_* and VMPK_DTYPE_*.
const statuses = ['OK', 'INVALID_ARGUMENT', 'OUT_OF_MEMORY', 'VERSION_MISMATCH', 'CORRUPT', 'NOT_FOUND', 'UNSUPPORTED',
                  'IO', 'OUT_OF_RANGE', 'SHAPE_MISMATCH', 'MISSING_IMPORT', 'INTERNAL'];
const dtypes = [null, ['f32', Float32Array], ['f64', Float64Array], ['f16', Uint16Array], ['bf16', Uint16Array],
                ['i8', Int8Array], ['i16', Int16Array], ['i32', Int32Array], ['i64', BigInt64Array],
                ['u8', Uint8Array], ['u16', Uint16Array], ['u32', Uint32Array], ['u64', BigUint64Array],
                ['bool', Uint8Array]];
const views = new Map(dtypes.slice(1));
const inNode = typeof process === 'object' && Boolean(process.versions?.node);
const unknownSize = 2n ** 64n - 1n, computedDim = -(2n ** 63n), unbounded = 2n ** 63n - 1n, pageBytes = 65536;

/** Every failure of this file: `code` is the status's name in vmpk/status.h, such as 'SHAPE_MISMATCH'. */
export class VmpkError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = 'VmpkError';
    this.code = code;
    this.status = statuses.indexOf(code);
  }
}
const fail = (code, message, cause) => { throw new VmpkError(code, message, cause === undefined ? {} : { cause }); };
const failStatus = (status, what) =>
  fail(statuses[status] ?? 'INTERNAL', `${what} answered ${statuses[status] ?? status}`);
const product = dims => dims.reduce((count, dim) => count * dim, 1);
const hex = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');

// ---- Variants ------------------------------------------------------------------------------------------------------

// A function that splats 0 and drops it; one that multiplies and adds three such (f32x4.relaxed_madd).
const header = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10];
const splat = [0x41, 0, 0xfd, 0x0f], drop = [0x1a, 0x0b];
const probes = {
  'relaxed-simd': [...header, 20, 1, 18, 0, ...splat, ...splat, ...splat, 0xfd, 0x85, 0x02, ...drop],
  simd128: [...header, 9, 1, 7, 0, ...splat, ...drop],
  baseline: header.slice(0, 8),
};
const variantNames = Object.keys(probes); // the best first

/** The variants that this engine can run, the best first. */
export const supportedVariants = () =>
  variantNames.filter(name => WebAssembly.validate(new Uint8Array(probes[name])));

function chooseVariant(source, wanted) {
  const offered = variantNames.filter(name => Object.hasOwn(source, name) && source[name]);
  if (wanted !== undefined && !offered.includes(wanted))
    fail('NOT_FOUND', `there is no variant ${wanted}, only ${offered.join(', ')}`);
  const variant = wanted ?? supportedVariants().find(name => offered.includes(name));
  return variant ?? fail('UNSUPPORTED', `this engine runs ${supportedVariants().join(', ')}; the module comes as ` +
                                        `${offered.join(', ')} only`);
}

// ---- Where bytes come from -----------------------------------------------------------------------------------------

const nodeModule = name => import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);
const asBytes = value => value instanceof ArrayBuffer ? new Uint8Array(value)
  : ArrayBuffer.isView(value) ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength) : null;

async function* streamChunks(stream) {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => {}); // ends the transfer when the consumer stops early
  }
}

function openResponse(response, reopen) {
  const status = `HTTP ${response.status}${response.statusText ? ` ${response.statusText}` : ''}`;
  const type = response.headers.get('content-type') ?? 'no content type';
  return { response, reopen, ok: response.ok, missing: [404, 410].includes(response.status),
           where: `${response.url || 'a Response'} (${status}, ${type})`,
           chunks: response.body ? streamChunks(response.body) : [] };
}

/** Answers {where, ok, chunks: bytes as they come, response?, reopen?}; `what` is for messages. */
async function open(source, what, request) {
  source = await source;
  if (typeof Response === 'function' && source instanceof Response) return openResponse(source);
  const bytes = asBytes(source);
  if (bytes) return { where: `${bytes.length} bytes in memory`, ok: true, chunks: [bytes] };
  if (typeof Blob === 'function' && source instanceof Blob)
    return { where: `a Blob of ${source.size} bytes`, ok: true, chunks: streamChunks(source.stream()) };
  if (!(source instanceof URL) && typeof source !== 'string')
    fail('INVALID_ARGUMENT', `${what}: neither a URL, a string, a Response nor bytes`);
  const where = String(source);
  if (inNode && !/^(https?|data|blob):/i.test(where)) {
    const { createReadStream } = await nodeModule('fs');
    return { where, ok: true, chunks: createReadStream(/^file:/i.test(where) ? new URL(where) : where) };
  }
  const get = async () => {
    try {
      return openResponse(await fetch(source, request), get);
    } catch (error) {
      return fail('IO', `${what}: cannot fetch ${where}: ${error.cause?.message ?? error.message}`, error);
    }
  };
  return get();
}

/** The bytes of `opened` one part after the other, with failures in words. */
async function* read(opened, what) {
  try {
    yield* opened.chunks;
  } catch (error) {
    fail(error.code === 'ENOENT' ? 'NOT_FOUND' : 'IO', `${what}: cannot read ${opened.where}: ${error.message}`, error);
  }
}

async function readAll(opened, what) {
  const parts = [];
  let size = 0;
  for await (const part of read(opened, what)) size += parts[parts.push(part) - 1].length;
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(size);
  for (let i = 0, at = 0; i < parts.length; at += parts[i++].length) all.set(parts[i], at);
  return all;
}

/** What bytes are that are not what was asked for. */
function describe(bytes) {
  if (bytes.length === 0) return 'nothing (0 bytes)';
  const text = String.fromCharCode(...bytes.subarray(0, 48)).trimStart(), start = JSON.stringify(text.slice(0, 24));
  const kinds = [[/^<(!doctype html|html|head|body)/i, 'an HTML page'], [/^<\?xml|^<[a-z]/i, 'an XML document'],
                 [/^[{[]/, 'JSON'], [/^version https:\/\/git-lfs/, 'a Git LFS pointer'], [/^\x7fELF/, 'an ELF file'],
                 [/^BC\xc0\xde/, 'LLVM bitcode'], [/^PK\x03\x04/, 'a zip archive'],
                 [/^\x1f\x8b/, 'gzip data (its content encoding is not declared)'],
                 [/^\(\xb5\x2f\xfd/, 'zstd data'], [/^\0asm\x0d/, 'a WebAssembly component'],
                 [/^\0asm/, 'a WebAssembly module']];
  const kind = kinds.find(([pattern]) => pattern.test(text))?.[1];
  const printable = /^[\x20-\x7e\s]*$/.test(text);
  return `${kind ?? 'bytes'} that begin${kind ? 's' : ''} with ${printable ? start : hex(bytes.subarray(0, 8))}`;
}

const isWasm = bytes => hex(bytes.subarray(0, 8)) === '0061736d01000000';

async function compile(source, request) {
  let opened = await open(source, 'module', request);
  const type = opened.response?.headers.get('content-type')?.split(';')[0].trim().toLowerCase();
  if (opened.ok && type === 'application/wasm' && WebAssembly.compileStreaming) {
    const spare = opened.reopen ? null : opened.response.clone();
    try {
      const module = await WebAssembly.compileStreaming(opened.response);
      spare?.body?.cancel().catch(() => {});
      return module;
    } catch {
      opened = spare ? openResponse(spare) : await opened.reopen(); // once more as bytes, to say what they are
    }
  }
  const bytes = await readAll(opened, 'module');
  if (!opened.ok || !isWasm(bytes))
    fail(opened.ok ? 'CORRUPT' : opened.missing ? 'NOT_FOUND' : 'IO',
         `module from ${opened.where}: got ${describe(bytes)} when it should be WebAssembly`);
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    const refused = /content security policy|unsafe-eval/i.test(error.message);
    return fail(refused ? 'UNSUPPORTED' : 'CORRUPT', `module from ${opened.where}: ${error.message}`, error);
  }
}

// ---- The module table ----------------------------------------------------------------------------------------------

/** Reads a module table as untrusted input; see vmpk/abi.h. Throws CORRUPT or VERSION_MISMATCH. */
class TableReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  corrupt(what) { return fail('CORRUPT', `module table: ${what}`); }
  u32(at) { return this.view.getUint32(at, true); }
  size(at, what) {
    const value = this.view.getBigUint64(at, true);
    return value <= Number.MAX_SAFE_INTEGER ? Number(value) : this.corrupt(`${what} is ${value}`);
  }
  span(at, stride, what) {
    const offset = this.u32(at), count = this.u32(at + 4);
    if (stride > 1 && offset % 8) this.corrupt(`the offset of ${what} is ${offset}, which is not a multiple of 8`);
    if (offset + count * stride > this.bytes.length)
      this.corrupt(`${what}: ${count} of ${stride} bytes at ${offset} end beyond ${this.bytes.length}`);
    return { offset, count };
  }
  text(at, what) {
    const { offset, count } = this.span(at, 1, what);
    return new TextDecoder().decode(this.bytes.subarray(offset, offset + count));
  }
  rows(at, stride, what, readRow) {
    const { offset, count } = this.span(at, stride, what);
    return Array.from({ length: count }, (_, i) => readRow(offset + i * stride, `${what} ${i}`));
  }

  dimEntry(at, what, symbols, isOutput) {
    const entry = this.view.getBigInt64(at, true);
    if (entry === computedDim && isOutput) return null;
    if (entry < 0 && -(entry + 1n) < symbols.length) return symbols[Number(-(entry + 1n))].name;
    if (entry < 0 || entry > Number.MAX_SAFE_INTEGER) this.corrupt(`${what} is ${entry}`);
    return Number(entry);
  }
  tensor(at, what, symbols, isOutput) {
    const { offset, count } = this.span(at + layout.tableTensor.dims, 8, `the dims of ${what}`);
    const dtype = dtypes[this.u32(at + layout.tableTensor.dtype)];
    if (!dtype) this.corrupt(`the dtype of ${what} is ${this.u32(at + layout.tableTensor.dtype)}`);
    if (count > layout.maxRank) this.corrupt(`the rank of ${what} is ${count}`);
    const axes = Array.from({ length: count }, (_, i) => offset + i * 8);
    const dims = axes.map((axis, i) => this.dimEntry(axis, `dim ${i} of ${what}`, symbols, isOutput));
    const fixed = product(dims.filter(dim => typeof dim === 'number')) * dtype[1].BYTES_PER_ELEMENT;
    if (!Number.isSafeInteger(fixed)) this.corrupt(`the dims of ${what} are ${dims}`);
    const tensor = { name: this.text(at, `the name of ${what}`), dtype: dtype[0], dims };
    const ordinal = axis => Number(-(this.view.getBigInt64(axis, true) + 1n)); // names are for people, and may repeat
    const value = axes.map((axis, i) => typeof dims[i] === 'string' ? ordinal(axis) : -1);
    return Object.defineProperty(tensor, 'symbols', { value });
  }
  dim(at, what) {
    const minimum = this.view.getBigInt64(at + layout.tableDim.minimum, true);
    const maximum = this.view.getBigInt64(at + layout.tableDim.maximum, true);
    if (minimum < 0 || minimum > Number.MAX_SAFE_INTEGER || maximum < minimum)
      this.corrupt(`the bounds of ${what} are ${minimum} and ${maximum}`);
    return { name: this.text(at, `the name of ${what}`), minimum: Number(minimum),
             maximum: maximum > Number.MAX_SAFE_INTEGER ? null : Number(maximum) };
  }
  function(at, what, strides) {
    const row = layout.tableFunction;
    const dims = this.rows(at + row.dims, strides.dim, `${what} dim`, this.dim.bind(this));
    const tensors = (kind, isOutput) => this.rows(at + row[`${kind}s`], strides.tensor, `${what} ${kind}`,
                                               (offset, name) => this.tensor(offset, name, dims, isOutput));
    const inputs = tensors('input', false), outputs = tensors('output', true);
    const lost = dims.find((_, k) => !inputs.some(input => input.symbols.includes(k)));
    if (lost) this.corrupt(`${what}: no input has its dim ${lost.name}`);
    const arena = this.view.getBigUint64(at + row.arenaSize, true);
    return { name: this.text(at, `the name of ${what}`), dims, inputs, outputs,
             arenaSize: arena === unknownSize ? null : this.size(at + row.arenaSize, `the arena of ${what}`) };
  }

  header() {
    const { header: row } = layout, { length } = this.bytes;
    if (length < row.sizeof) this.corrupt(`size is ${length} when it should be at least ${row.sizeof}`);
    if (String.fromCharCode(...this.bytes.subarray(0, 8)) !== 'VMPKTBL1')
      this.corrupt('it does not begin with VMPKTBL1');
    const version = this.u32(row.abiVersion), size = this.size(row.tableSize, 'its size');
    if (version < layout.abiVersion)
      fail('VERSION_MISMATCH', `the module's table has abi version ${version}, this runtime reads ` +
                               `${layout.abiVersion} and later: package the model again`);
    if (size !== length) this.corrupt(`size is ${length} when it should be ${size}`);
    if (this.u32(row.size) < row.sizeof || this.u32(row.size) > length)
      this.corrupt(`header size is ${this.u32(row.size)} when it should be ${row.sizeof}`);
    const strides = {};
    for (const kind of ['function', 'dispatch', 'import', 'tensor', 'dim']) {
      const least = layout[`table${kind[0].toUpperCase()}${kind.slice(1)}`].sizeof;
      strides[kind] = this.u32(row[`${kind}Size`]);
      if (strides[kind] < least || strides[kind] % 8)
        this.corrupt(`${kind}_size is ${strides[kind]} when it should be ${least}`);
    }
    return strides;
  }
  read() {
    const strides = this.header(), { header: row, tableDispatch, tableImport } = layout;
    const number = at => Number(this.view.getBigUint64(at, true));
    return {
      name: this.text(row.name, 'the name'),
      digest: hex(this.bytes.subarray(row.digest, row.digest + 32)),
      weights: { size: this.size(row.weightsSize, 'the size of the weights'),
                 digest: hex(this.bytes.subarray(row.weightsDigest, row.weightsDigest + 32)) },
      stackSize: this.size(row.stackSize, 'the stack size'),
      functions: this.rows(row.functions, strides.function, 'function', (at, what) => this.function(at, what, strides)),
      dispatches: this.rows(row.dispatches, strides.dispatch, 'dispatch', (at, what) => ({
        name: this.text(at, `the name of ${what}`),
        location: this.text(at + tableDispatch.location, `the location of ${what}`),
        flops: number(at + tableDispatch.flops), bytes: number(at + tableDispatch.bytes) })),
      imports: this.rows(row.imports, strides.import, 'import', (at, what) => ({
        name: this.text(at, `the name of ${what}`), version: this.u32(at + tableImport.version),
        required: this.u32(at + tableImport.required) !== 0 })),
    };
  }
}

/** The contents of a module table (bytes), checked. */
export const readTable = bytes => new TableReader(asBytes(bytes)).read();

// ---- Memory --------------------------------------------------------------------------------------------------------

/** Hands out memory above `base`; the lists are kept here, outside. Freed neighbours join; freed ends lower the top. */
class Heap {
  constructor(memory, base) {
    this.memory = memory;
    this.top = Math.ceil(base / layout.alignment) * layout.alignment;
    this.sizes = new Map(); // of the blocks in use, by address
    this.holes = []; // [address, size], by address, no two touching, none touching the top
  }
  allocate(bytes) {
    const size = Math.max(1, Math.ceil(bytes / layout.alignment)) * layout.alignment;
    let best = -1;
    this.holes.forEach((hole, i) => { if (hole[1] >= size && !(hole[1] >= this.holes[best]?.[1])) best = i; });
    const address = best < 0 ? this.extend(size) : this.holes[best][0];
    if (best >= 0 && this.holes[best][1] === size) this.holes.splice(best, 1);
    else if (best >= 0) this.holes[best] = [address + size, this.holes[best][1] - size];
    this.sizes.set(address, size);
    return address;
  }
  extend(size) {
    const address = this.top, missing = address + size - this.memory.buffer.byteLength;
    try {
      if (missing > 0) this.memory.grow(Math.ceil(missing / pageBytes));
    } catch (error) {
      fail('OUT_OF_MEMORY', `cannot grow memory from ${this.memory.buffer.byteLength} by ${missing} bytes`, error);
    }
    this.top = address + size;
    return address;
  }
  free(address) {
    this.holes.push([address, this.sizes.get(address)]);
    this.sizes.delete(address);
    this.holes.sort((a, b) => a[0] - b[0]);
    this.holes = this.holes.reduce((joined, hole) => {
      const last = joined.at(-1);
      if (last && last[0] + last[1] === hole[0]) last[1] += hole[1];
      else joined.push(hole);
      return joined;
    }, []);
    const last = this.holes.at(-1);
    if (last[0] + last[1] === this.top) this.top = this.holes.pop()[0];
  }
}

// ---- Module --------------------------------------------------------------------------------------------------------

function checkKind(module) {
  const imported = WebAssembly.Module.imports(module).map(({ module: from, name }) => `${from}.${name}`);
  if (imported.length)
    fail('UNSUPPORTED', `the module imports ${imported.slice(0, 4).join(', ')}: only standalone modules ` +
                        '(web-wasm) run here');
  const exported = new Map(WebAssembly.Module.exports(module).map(({ name, kind }) => [name, kind]));
  for (const [name, kind] of [['vmpk_query', 'function'], ['memory', 'memory'], ['__indirect_function_table', 'table'],
                              ['__heap_base', 'global']])
    if (exported.get(name) !== kind)
      fail('UNSUPPORTED', `no vmpack module: it does not export the ${kind} ${name}`);
}

/** A loaded model. Made by load(). */
class Module {
  #exports; #entry; #heap; #own = null; #trap = null;

  constructor(exports, variant) {
    this.#exports = exports;
    this.#heap = new Heap(exports.memory, exports.__heap_base.value >>> 0);
    this.variant = variant;
    this.#query();
    const { functions, ...table } = readTable(this.#tableBytes());
    Object.assign(this, table, { signature: { functions } });
    this.weights.embedded = this.#entry.weights !== 0;
    if (this.weights.embedded && this.#entry.weights + this.weights.size > this.memory.buffer.byteLength)
      fail('CORRUPT', `the weights, ${this.weights.size} bytes at ${this.#entry.weights}, end beyond the memory`);
    const lacking = this.imports.find(({ required }) => required);
    if (lacking)
      fail('MISSING_IMPORT', `the module needs ${lacking.name} version ${lacking.version}; this host does not have it`);
  }
  #query() {
    const { entry: row, abiVersion } = layout, at = this.#heap.allocate(row.sizeof);
    new Uint8Array(this.memory.buffer, at, row.sizeof).fill(0);
    this.view().setUint32(at + row.size, row.sizeof, true);
    const status = this.call('vmpk_query', this.#exports.vmpk_query, abiVersion, at), view = this.view();
    if (status === statuses.indexOf('VERSION_MISMATCH'))
      fail('VERSION_MISMATCH', `the module has abi version ${view.getUint32(at + row.abiVersion, true)}, ` +
                               `this runtime ${abiVersion}`);
    if (status) failStatus(status, 'vmpk_query');
    const fn = slot => {
      const index = view.getUint32(at + slot, true), table = this.#exports.__indirect_function_table;
      return (index < table.length && table.get(index)) ||
             fail('CORRUPT', `there is no function ${index} in the module's table`);
    };
    this.#entry = { table: view.getUint32(at + row.table, true),
                    tableSize: Number(view.getBigUint64(at + row.tableSize, true)),
                    weights: view.getUint32(at + row.weights, true), measure: fn(row.measure), invoke: fn(row.invoke) };
    this.#heap.free(at);
  }
  #tableBytes() {
    const { table, tableSize } = this.#entry;
    if (table % 8 || table + tableSize > this.memory.buffer.byteLength)
      fail('CORRUPT', `module table: ${tableSize} bytes at ${table} are not inside the memory`);
    return new Uint8Array(this.memory.buffer, table, tableSize).slice();
  }

  /** Puts external weights into memory as they arrive, then checks them. */
  async fetchWeights(source, { request, verify = true }) {
    const { size, digest } = this.weights;
    if (this.weights.embedded || size === 0) return;
    if (source === undefined || source === null)
      fail('NOT_FOUND', `${this.name}: its ${size} bytes of weights are a file of their own: give options.weights`);
    const opened = await open(source, 'weights', request), at = this.#heap.allocate(size);
    if (!opened.ok) fail(opened.missing ? 'NOT_FOUND' : 'IO', `weights from ${opened.where}: the server has none`);
    let filled = 0;
    for await (const part of read(opened, 'weights')) {
      if (filled + part.length <= size) new Uint8Array(this.memory.buffer, at + filled, part.length).set(part);
      filled += part.length;
      if (filled > size) break;
    }
    const bytes = new Uint8Array(this.memory.buffer, at, size);
    if (filled !== size)
      fail('CORRUPT', `weights from ${opened.where}: size is ${filled > size ? 'more than ' : ''}` +
                      `${Math.min(filled, size)} when it should be ${size}: ${describe(bytes.subarray(0, filled))}`);
    if (verify) await checkDigest(bytes, digest, opened.where);
    this.#entry.weights = at;
  }

  /** The memory that code, weights and all instances share; its views end when it grows. */
  get memory() { return (this.#exports ?? fail('INVALID_ARGUMENT', `module ${this.name} is disposed`)).memory; }
  /** @internal */ view() { return new DataView(this.memory.buffer); }
  /** @internal */ get heap() { return this.#heap; }
  /** @internal */ get entry() { return this.#entry; }

  /** @internal Calls into the module. After a trap its stack pointer is lost, so that no later call may run. */
  call(what, fn, ...values) {
    if (this.#trap) fail('INTERNAL', `the module trapped before (${this.#trap.message}): load it again`, this.#trap);
    try {
      return fn(...values);
    } catch (error) {
      this.#trap = error;
      return fail('INTERNAL', `${what} trapped: ${error.message}`, error);
    }
  }

  async instantiate() { return new Instance(this); }
  runSync(inputs, options) { return (this.#own ??= new Instance(this)).runSync(inputs, options); }
  async run(inputs, options) { return this.runSync(inputs, options); }
  /** Lets go of the memory, once no instance or view of the caller's holds it either. */
  dispose() { this.#exports = this.#entry = this.#heap = this.#own = null; }
}

async function checkDigest(bytes, digest, where) {
  const subtle = globalThis.crypto?.subtle ?? (inNode ? (await nodeModule('crypto')).webcrypto.subtle : undefined);
  if (!subtle)
    fail('UNSUPPORTED', 'crypto.subtle is missing, so that the weights cannot be checked: serve the page over https ' +
                        'or from localhost, or give {verify: false} when something else vouches for them');
  const actual = hex(new Uint8Array(await subtle.digest('SHA-256', bytes)));
  if (actual !== digest) fail('CORRUPT', `weights from ${where}: SHA-256 is ${actual} when it should be ${digest}`);
}

/** Loads a model; see vmpk.d.ts. */
export async function load(source, options = {}) {
  source = await source;
  let variant = options.variant ?? null;
  if (source && Object.getPrototypeOf(source) === Object.prototype) {
    if (!variantNames.some(name => Object.hasOwn(source, name)))
      fail('INVALID_ARGUMENT', `module: an object with none of ${variantNames.join(', ')}`);
    variant = chooseVariant(source, options.variant);
    source = source[variant];
  }
  const compiled = source instanceof WebAssembly.Module ? source : await compile(source, options.request);
  checkKind(compiled);
  let instance;
  try {
    instance = await WebAssembly.instantiate(compiled);
  } catch (error) {
    fail(error instanceof RangeError ? 'OUT_OF_MEMORY' : 'CORRUPT', `cannot instantiate the module: ${error.message}`,
         error);
  }
  const module = new Module(instance.exports, variant);
  await module.fetchWeights(options.weights, options);
  return module;
}

// ---- Instance ------------------------------------------------------------------------------------------------------

/** A block of memory that grows when it has to and keeps its contents while it does not. */
class Slot {
  address = 0; capacity = 0;
  constructor(module) { this.module = module; }
  reserve(bytes) {
    if (this.capacity >= Math.max(1, bytes)) return;
    this.release();
    this.address = this.module.heap.allocate(bytes);
    this.capacity = Math.max(1, bytes);
  }
  release() {
    if (this.capacity) this.module.heap?.free(this.address); // no heap: the module is disposed, and all with it
    this.address = this.capacity = 0;
  }
}

/** One tensor of an instance: its row of the signature, its memory and the dims it has now. */
class Tensor extends Slot {
  dims = null; // of the next call
  filled = false; // by the caller, through a view
  constructor(module, row, label) {
    super(module);
    Object.assign(this, { row, label, type: views.get(row.dtype) });
  }
  get count() { return product(this.dims); }
  get bytes() { return this.count * this.type.BYTES_PER_ELEMENT; }
  array() { return new this.type(this.module.memory.buffer, this.address, this.count); }

  /** Whether `dims` can be this tensor's, apart from its symbolic dims. */
  checkDims(dims) {
    const { label, row } = this, shape = () => `[${row.dims.join(', ')}]`;
    if (!dims && row.dims.some(dim => typeof dim !== 'number'))
      fail('INVALID_ARGUMENT', `${label}: its dims are missing; they are ${shape()}`);
    dims = Array.from(dims ?? row.dims);
    const odd = dims.findIndex(dim => !Number.isSafeInteger(dim) || dim < 0);
    if (odd >= 0) fail('INVALID_ARGUMENT', `${label}, dim ${odd}: ${dims[odd]} is no size`);
    if (dims.length !== row.dims.length)
      fail('SHAPE_MISMATCH', `${label}: rank is ${dims.length} when it should be ${row.dims.length}: ${shape()}`);
    dims.forEach((dim, i) => {
      if (typeof row.dims[i] === 'number' && dim !== row.dims[i])
        fail('SHAPE_MISMATCH', `${label}, dim ${i}: size is ${dim} when it should be ${row.dims[i]}`);
    });
    return dims;
  }
  /** Checks the caller's array or {data, dims} and answers them. */
  check(value) {
    const data = ArrayBuffer.isView(value) ? value : value?.data, dims = this.checkDims(value?.dims);
    const { dtype } = this.row, names = [this.type.name], { memory } = this.module;
    if (dtype === 'f16') names.push('Float16Array');
    if (dtype === 'u8' || dtype === 'bool') names.push('Uint8ClampedArray');
    const name = ArrayBuffer.isView(data) ? data[Symbol.toStringTag] : data === null ? 'null' : typeof data;
    if (!names.includes(name))
      fail('INVALID_ARGUMENT', `${this.label}: data is ${name} when it should be ${this.type.name} (${dtype})`);
    const count = product(dims), stale = count > 0 && data.buffer.byteLength === 0;
    if (data.length !== count)
      fail('INVALID_ARGUMENT', `${this.label}: data has ${data.length} elements when it should have ${count}: ` +
                               `[${dims.join(', ')}]${stale ? ' (a view from before the memory grew)' : ''}`);
    const inside = data.buffer === memory.buffer, inPlace = inside && data.byteOffset === this.address;
    return { data: inside && !inPlace ? data.slice() : data, dims, inPlace }; // views may end before they are read
  }
  write({ data, inPlace }) {
    if (inPlace) return;
    const target = this.array();
    target.set(this.row.dtype === 'f16' ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data);
    if (this.row.dtype === 'bool') target.forEach((byte, i) => { target[i] = byte ? 1 : 0; });
  }
}

/** What an instance keeps for one function: the structs of a call, and its tensors. */
class Plan {
  constructor(module, ordinal) {
    const row = module.signature.functions[ordinal];
    Object.assign(this, { module, ordinal, row, dims: row.dims.map(() => -1) });
    const tensors = kind => row[`${kind}s`].map(tensor => new Tensor(module, tensor, `${kind} ${tensor.name}`));
    this.inputs = tensors('input');
    this.outputs = tensors('output');
    this.arenaSize = row.arenaSize;
    this.measures = row.arenaSize === null || row.outputs.some(output => output.dims.includes(null));
    this.#layOut();
  }
  #layOut() {
    const { module, row, inputs, outputs } = this, { host, call, measured, buffer } = layout;
    const ranks = row.outputs.reduce((sum, output) => sum + output.dims.length, 0);
    const sizes = { host: host.sizeof, call: call.sizeof, measured: measured.sizeof, dims: row.dims.length * 8,
                    outputDims: ranks * 8, inputs: inputs.length * buffer.sizeof,
                    outputs: outputs.length * buffer.sizeof, imports: module.imports.length * 8 };
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    this.block = new Slot(module);
    this.block.reserve(total);
    new Uint8Array(module.memory.buffer, this.block.address, total).fill(0); // NULL: host functions, optional imports
    let at = this.block.address;
    this.at = Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, (at += size) - size]));
    const view = module.view();
    view.setUint32(this.at.host + host.size, host.sizeof, true);
    view.setUint32(this.at.host + host.abiVersion, layout.abiVersion, true);
  }
  release() { [this.block, ...this.inputs, ...this.outputs].forEach(slot => slot.release()); }

  /** Gives the symbolic dims their values from the inputs' dims. */
  bindDims() {
    const first = [];
    for (const { row, dims, label } of this.inputs)
      dims.forEach((size, i) => {
        const k = row.symbols[i];
        if (k < 0) return;
        const { name, minimum, maximum } = this.row.dims[k], here = `${label}, dim ${i} (${name})`;
        if (first[k] && this.dims[k] !== size)
          fail('SHAPE_MISMATCH', `${here}: size is ${size} when it should be ${this.dims[k]} as in ${first[k]}`);
        if (size < minimum || size > (maximum ?? Infinity))
          fail('OUT_OF_RANGE', `${here}: size is ${size} when it should be ` +
                               (maximum === null ? `at least ${minimum}` : `${minimum} to ${maximum}`));
        this.dims[k] = size;
        first[k] = `${label}, dim ${i}`;
      });
    const view = this.module.view();
    this.dims.forEach((size, k) => view.setBigInt64(this.at.dims + k * 8, BigInt(size), true));
  }
  /** Sizes the outputs and the arena for these dims. */
  measure() {
    const { at, module, row } = this, { measured } = layout, known = [];
    if (this.measures) {
      const view = module.view();
      view.setUint32(at.measured + measured.size, measured.sizeof, true);
      view.setBigUint64(at.measured + measured.arenaSize, 0n, true);
      view.setUint32(at.measured + measured.outputDims, at.outputDims, true);
      const what = `measure of ${row.name}`;
      const status = module.call(what, module.entry.measure, this.ordinal, at.dims, at.measured);
      if (status) failStatus(status, what);
      if (row.arenaSize === null) this.arenaSize = Number(view.getBigUint64(at.measured + measured.arenaSize, true));
      for (let i = at.outputDims; i < at.inputs; i += 8) known.push(Number(view.getBigInt64(i, true)));
    }
    let next = 0;
    for (const output of this.outputs) {
      output.dims = output.row.dims.map((dim, i) => {
        const symbol = output.row.symbols[i], computed = known[next++];
        return symbol >= 0 ? this.dims[symbol] : dim ?? computed;
      });
      if (output.dims.some(dim => dim < 0))
        fail('INTERNAL', `${output.label}: measure answered the dims ${output.dims}`);
    }
  }
  checkedBytes({ bytes, label }) {
    return bytes < 2 ** 32 ? bytes : fail('OUT_OF_MEMORY', `${label}: it needs ${bytes} bytes`);
  }
  /** Finds memory for tensors and arena; from here to the end of the call it does not grow. */
  reserve(arena) {
    const tensors = [...this.inputs, ...this.outputs];
    const bytes = tensors.reduce((sum, tensor) => sum + this.checkedBytes(tensor), this.arenaSize);
    if (bytes >= 2 ** 32) fail('OUT_OF_MEMORY', `function ${this.row.name}: tensors and arena need ${bytes} bytes`);
    for (const tensor of tensors) tensor.reserve(tensor.bytes);
    arena.reserve(this.arenaSize);
  }
  /** Fills the call and makes it. Addresses and sizes are below 2^32: the upper halves of their slots stay zero. */
  invoke(arena) {
    const { at, module, row } = this, { call, buffer } = layout, view = module.view();
    const pointers = { host: at.host, arena: arena.address, weights: module.entry.weights, imports: at.imports,
                       dims: at.dims, inputs: at.inputs, outputs: at.outputs };
    view.setUint32(at.call + call.size, call.sizeof, true);
    view.setUint32(at.call + call.function, this.ordinal, true);
    view.setUint32(at.call + call.arenaSize, arena.capacity, true);
    for (const name in pointers) view.setUint32(at.call + call[name], pointers[name], true);
    for (const kind of ['inputs', 'outputs'])
      this[kind].forEach((tensor, i) => {
        view.setUint32(at[kind] + i * buffer.sizeof + buffer.data, tensor.address, true);
        view.setUint32(at[kind] + i * buffer.sizeof + buffer.size, tensor.bytes, true);
      });
    const status = module.call(`function ${row.name}`, module.entry.invoke, at.call);
    if (status) failStatus(status, `function ${row.name}`);
  }
}

/** The arena and the tensors of one caller, in the module's memory. Made by Module.instantiate(). */
class Instance {
  #plans = new Map(); #arena;
  constructor(module) {
    this.module = module;
    this.#arena = new Slot(module);
  }
  #plan(name) {
    if (!this.module?.memory) fail('INVALID_ARGUMENT', 'the instance is disposed');
    const { functions } = this.module.signature;
    const main = functions.findIndex(row => row.name === 'main');
    const ordinal = name === undefined ? Math.max(0, main) : functions.findIndex(row => row.name === name);
    if (!functions[ordinal])
      fail('NOT_FOUND', `there is no function ${name}, only ${functions.map(row => row.name).join(', ')}`);
    if (!this.#plans.has(ordinal)) this.#plans.set(ordinal, new Plan(this.module, ordinal));
    return this.#plans.get(ordinal);
  }
  #input(plan, name) {
    const names = plan.inputs.map(({ row }) => row.name);
    return plan.inputs[names.indexOf(name)] ??
           fail('NOT_FOUND', `function ${plan.row.name} has no input ${name}, only ${names.join(', ')}`);
  }
  #prepare(plan) {
    plan.bindDims();
    plan.measure();
    plan.reserve(this.#arena);
  }

  runSync(inputs = {}, { function: name, view = false } = {}) {
    const plan = this.#plan(name);
    for (const key of Object.keys(inputs)) this.#input(plan, key);
    const given = plan.inputs.map(input => {
      if (Object.hasOwn(inputs, input.row.name)) return input.check(inputs[input.row.name]);
      return input.filled ? null : fail('INVALID_ARGUMENT', `${input.label} is missing`);
    });
    plan.inputs.forEach((input, i) => {
      if (given[i]) Object.assign(input, { dims: given[i].dims, filled: given[i].inPlace });
    });
    this.#prepare(plan);
    plan.inputs.forEach((input, i) => { if (given[i]) input.write(given[i]); });
    plan.invoke(this.#arena);
    return Object.fromEntries(plan.outputs.map(output =>
      [output.row.name, { data: view ? output.array() : output.array().slice(), dims: [...output.dims] }]));
  }
  async run(inputs, options) { return this.runSync(inputs, options); }

  inputView(name, dims, { function: functionName } = {}) {
    const plan = this.#plan(functionName), input = this.#input(plan, name), checked = input.checkDims(dims);
    Object.assign(input, { dims: checked, filled: false });
    const isKnown = ({ row }) => row.dims.every(dim => typeof dim === 'number');
    const others = plan.inputs.filter(other => other !== input && !other.filled);
    if (!others.every(isKnown)) {
      input.reserve(plan.checkedBytes(input));
    } else { // everything is known: find all memory now, so that the next call does not grow it
      others.forEach(other => { other.dims = [...other.row.dims]; });
      this.#prepare(plan);
    }
    input.filled = true;
    return input.array();
  }
  dispose() {
    if (!this.module) return;
    for (const plan of this.#plans.values()) plan.release();
    this.#arena.release();
    this.#plans.clear();
    this.module = null;
  }
}
