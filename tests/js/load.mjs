// Loading: every kind of source, variants, weights, and what is said when it is not what it should be.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { load, supportedVariants } from '../../runtime/js/vmpk.mjs';
import { mainInputs, mainOutputs, throws, twin, weights } from './twin.mjs';

const wasm = twin(), html = '<!DOCTYPE html><title>Not found</title>';
const folder = mkdtempSync(join(tmpdir(), 'vmpk-js-'));
const files = { wasm: join(folder, 'model.wasm'), weights: join(folder, 'model.weights') };
let server, origin;

// PATH: [status, content type, body]
const routes = {
  '/model.wasm': [200, 'application/wasm', wasm],
  '/parameters.wasm': [200, 'Application/WASM; charset=utf-8', wasm],
  '/octets.wasm': [200, 'application/octet-stream', wasm],
  '/untyped.wasm': [200, undefined, wasm],
  '/fallback.wasm': [200, 'text/html', html],
  '/lying.wasm': [200, 'application/wasm', html],
  '/missing.wasm': [404, 'text/html', html],
  '/broken.wasm': [503, 'application/wasm', wasm],
  '/cut.wasm': [200, 'application/wasm', wasm.subarray(0, 1000)],
  '/model.weights': [200, 'application/octet-stream', weights],
};
before(async () => {
  writeFileSync(files.wasm, wasm);
  writeFileSync(files.weights, weights);
  server = createServer((request, response) => {
    const [status, type, body] = routes[request.url] ?? routes['/missing.wasm'];
    response.writeHead(status, type ? { 'content-type': type } : {});
    response.end(body);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections?.();
  rmSync(folder, { recursive: true });
});

async function check(module) {
  const inputs = mainInputs(3);
  assert.deepEqual(await module.run(inputs), mainOutputs(inputs));
}

test('every kind of source', async () => {
  const sources = {
    bytes: wasm, 'an ArrayBuffer': wasm.buffer, 'a DataView': new DataView(wasm.buffer), 'a Buffer': Buffer.from(wasm),
    module: await WebAssembly.compile(wasm), 'a promise': WebAssembly.compile(wasm), blob: new Blob([wasm]),
    'a path': files.wasm, 'a file: URL': pathToFileURL(files.wasm), 'a file: string': pathToFileURL(files.wasm).href,
    string: `${origin}/model.wasm`, URL: new URL('/model.wasm', origin), Response: await fetch(`${origin}/model.wasm`),
    'a promise of a Response': fetch(`${origin}/octets.wasm`), 'a Response of bytes': new Response(wasm),
    'a data: URL': `data:application/wasm;base64,${Buffer.from(wasm).toString('base64')}`,
    'a type with parameters': `${origin}/parameters.wasm`, 'the wrong type': `${origin}/octets.wasm`, untyped: `${origin}/untyped.wasm`,
  };
  for (const [kind, source] of Object.entries(sources))
    await assert.doesNotReject(async () => {
      const module = await load(source, { weights });
      assert.equal(module.variant, null);
      await check(module);
    }, kind);
});

test('weights from everywhere', async () => {
  for (const source of [weights, weights.buffer, files.weights, pathToFileURL(files.weights), `${origin}/model.weights`,
                        await fetch(`${origin}/model.weights`), fetch(`${origin}/model.weights`), new Blob([weights])])
    await check(await load(wasm, { weights: source }));
});

test('wrong weights', async () => {
  const flipped = weights.slice();
  flipped[100000] ^= 1;
  await throws(() => load(wasm, { weights: flipped }), 'CORRUPT', /weights from 262144 bytes in memory: SHA-256 is [0-9a-f]{64} when it should be [0-9a-f]{64}/);
  await throws(() => load(wasm, { weights: weights.subarray(1) }), 'CORRUPT', /size is 262143 when it should be 262144/);
  await throws(() => load(wasm, { weights: new Uint8Array(262145) }), 'CORRUPT', /size is more than 262144/);
  await throws(() => load(wasm, { weights: new Uint8Array() }), 'CORRUPT', /size is 0 .* nothing/);
  await throws(() => load(wasm), 'NOT_FOUND', /twin: its 262144 bytes of weights are a file of their own: give options.weights/);
  await throws(() => load(wasm, { weights: `${origin}/nothing` }), 'NOT_FOUND', /weights from http.*\/nothing \(HTTP 404 Not Found, text\/html\)/);
  await throws(() => load(wasm, { weights: `${origin}/fallback.wasm` }), 'CORRUPT', /fallback\.wasm.*size is 39 .*an HTML page/);
  await throws(() => load(wasm, { weights: join(folder, 'absent') }), 'NOT_FOUND', /weights: cannot read .*absent/);
  await throws(() => load(wasm, { weights: 5 }), 'INVALID_ARGUMENT', /weights: neither a URL/);
  await load(wasm, { weights: flipped, verify: false });
});

test('no crypto.subtle, as on a page that is not secure', async () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  const versions = Object.getOwnPropertyDescriptor(process, 'versions');
  // A copy of the module that takes itself to be in a browser.
  Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '' }, configurable: true });
  const browser = await import('../../runtime/js/vmpk.mjs?browser');
  Object.defineProperty(process, 'versions', versions);
  Object.defineProperty(globalThis, 'crypto', { value: {}, configurable: true });
  try {
    await assert.rejects(browser.load(wasm, { weights }), { code: 'UNSUPPORTED', message: /crypto\.subtle is missing.*https/ });
    await check(await browser.load(wasm, { weights, verify: false }));
    await check(await load(wasm, { weights })); // node has it elsewhere
  } finally {
    if (own) Object.defineProperty(globalThis, 'crypto', own);
    else delete globalThis.crypto;
  }
});

test('what is not WebAssembly is described', async () => {
  const cases = [
    [`${origin}/fallback.wasm`, 'CORRUPT', /fallback\.wasm \(HTTP 200 OK, text\/html\): got an HTML page .*<!DOCTYPE html/],
    [`${origin}/lying.wasm`, 'CORRUPT', /lying\.wasm \(HTTP 200 OK, application\/wasm\): got an HTML page/],
    [`${origin}/missing.wasm`, 'NOT_FOUND', /missing\.wasm \(HTTP 404 Not Found, text\/html\): got an HTML page/],
    [`${origin}/broken.wasm`, 'IO', /broken\.wasm \(HTTP 503 Service Unavailable/],
    [fetch(`${origin}/lying.wasm`), 'CORRUPT', /lying\.wasm .*got an HTML page/],
    [`${origin}/cut.wasm`, 'CORRUPT', /cut\.wasm \(HTTP 200 OK/],
    [join(folder, 'absent.wasm'), 'NOT_FOUND', /module: cannot read .*absent\.wasm/],
    [folder, 'IO', /module: cannot read/],
    ['http://127.0.0.1:1/model.wasm', 'IO', /module: cannot fetch http:\/\/127\.0\.0\.1:1/],
    [new TextEncoder().encode('\n <html>'), 'CORRUPT', /module from 8 bytes in memory: got an HTML page .*<html>/],
    [new TextEncoder().encode('{"error": 1}'), 'CORRUPT', /got JSON/],
    [new TextEncoder().encode('version https://git-lfs.github.com/spec/v1'), 'CORRUPT', /got a Git LFS pointer/],
    [Uint8Array.of(0x1f, 0x8b, 8, 0), 'CORRUPT', /got gzip data .*1f8b0800/],
    [Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd), 'CORRUPT', /got zstd data/],
    [Uint8Array.of(0x7f, 0x45, 0x4c, 0x46), 'CORRUPT', /got an ELF file/],
    [Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0), 'CORRUPT', /got a WebAssembly component/],
    [Uint8Array.of(1, 2, 3), 'CORRUPT', /got bytes that begin with 010203/],
    [new Uint8Array(), 'CORRUPT', /got nothing/],
    [42, 'INVALID_ARGUMENT', /module: neither a URL/],
    [null, 'INVALID_ARGUMENT', /module: neither a URL/],
  ];
  for (const [source, code, pattern] of cases) await throws(() => load(source, { weights }), code, pattern);
});

test('every truncation of a module is refused', async () => {
  for (let size = 0; size < wasm.length; size += 97)
    await throws(() => load(wasm.subarray(0, size), { weights }), 'CORRUPT', /bytes in memory/);
});

test('WebAssembly that is no module of ours', async () => {
  const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
  await throws(() => load(empty), 'UNSUPPORTED', /no vmpack module: it does not export the function vmpk_query/);
  const importing = Uint8Array.of(...empty, 2, 15, 1, 3, 0x65, 0x6e, 0x76, 6, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 2, 0, 0); // env.memory
  await throws(() => load(importing), 'UNSUPPORTED', /imports env\.memory: only standalone modules/);
});

test('variants', async () => {
  const names = { baseline: 'twin', simd128: 'twin.simd128', 'relaxed-simd': 'twin.relaxed-simd' };
  const map = Object.fromEntries(Object.entries(names).map(([variant, file]) => [variant, twin(file)]));
  // What the engine can run is known from the modules themselves, which use the instructions.
  const runs = Object.keys(map).reverse().filter(variant => WebAssembly.validate(map[variant]));
  assert.deepEqual(supportedVariants(), runs);
  const best = await load(map, { weights });
  assert.equal(best.variant, runs[0]);
  await check(best);
  for (const variant of runs) {
    const module = await load(map, { weights, variant });
    assert.equal(module.variant, variant);
    assert.deepEqual(module.runSync({ x: Float32Array.of(1, 2, 3, -4) }, { function: 'madd' }).y.data, Float32Array.of(2, 6, 12, 12));
  }
  assert.equal((await load({ baseline: map.baseline }, { weights })).variant, 'baseline');
  assert.equal((await load({ baseline: files.wasm, simd128: undefined }, { weights })).variant, 'baseline');
  await throws(() => load({ baseline: map.baseline }, { weights, variant: 'simd128' }), 'NOT_FOUND', /no variant simd128, only baseline/);
  await throws(() => load({ 'relaxed simd': map.baseline }), 'INVALID_ARGUMENT', /none of relaxed-simd, simd128, baseline/);
  const unsupported = Object.keys(map).find(variant => !runs.includes(variant));
  if (unsupported) await throws(() => load({ [unsupported]: map[unsupported] }), 'UNSUPPORTED', /this engine runs .*; the module comes as/);
});
