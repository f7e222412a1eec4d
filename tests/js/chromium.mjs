// The host in a headless Chromium, on a page whose policy forbids eval: streaming, wrong types, variants, weights.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { mainInputs, mainOutputs, twin, weights } from './twin.mjs';

const html = '<!DOCTYPE html><title>vmpk</title>';
const script = readFileSync(new URL('../../runtime/js/vmpk.mjs', import.meta.url));
// PATH: [status, content type, body, headers]
const routes = {
  '/': [200, 'text/html', html, { 'content-security-policy': "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval'" }],
  '/strict': [200, 'text/html', html, { 'content-security-policy': "default-src 'none'; connect-src 'self'; script-src 'self'" }],
  '/vmpk.mjs': [200, 'text/javascript', script],
  '/model.wasm': [200, 'application/wasm', twin()],
  '/simd128.wasm': [200, 'application/wasm', twin('twin.simd128')],
  '/relaxed-simd.wasm': [200, 'application/wasm', twin('twin.relaxed-simd')],
  '/octets.wasm': [200, 'application/octet-stream', twin()],
  '/fallback.wasm': [200, 'text/html', html],
  '/lying.wasm': [200, 'application/wasm', html],
  '/model.weights': [200, 'application/octet-stream', weights],
  '/short.weights': [200, 'application/octet-stream', weights.subarray(0, 1000)],
};
let server, origin, browser, page;
before(async () => {
  server = createServer((request, response) => {
    const [status, type, body, headers] = routes[request.url] ?? [404, 'text/html', html];
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(body);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({ executablePath: process.env.VMPACK_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  page = await browser.newPage();
  await page.goto(origin);
});
after(async () => {
  await browser?.close();
  server.close();
  server.closeAllConnections?.();
});

/** Loads and runs in the page; answers {variant, outputs} or {code, message}; typed arrays travel as strings. */
function attempt(source, options = {}) {
  const { x, ids, flags } = mainInputs(4);
  return page.evaluate(async ({ source, options, x, ids, flags }) => {
    const { load } = await import('/vmpk.mjs');
    if (options.response) source = fetch(source);
    try {
      const module = await load(source, { weights: '/model.weights', ...options });
      const outputs = await module.run({ x: { data: Float32Array.from(x), dims: [4, 3] },
                                         ids: { data: BigInt64Array.from(ids.map(BigInt)), dims: [4] },
                                         flags: { data: Uint8Array.from(flags), dims: [4] } });
      return { variant: module.variant, outputs: Object.values(outputs).map(({ data }) => String(data)) };
    } catch (error) {
      return { code: error.code, message: `${error.name}: ${error.message}` };
    }
  }, { source, options, x: [...x.data], ids: [...ids.data].map(String), flags: [...flags.data] });
}
const outputs = Object.values(mainOutputs(mainInputs(4))).map(({ data }) => String(data));
const failure = (result, code, pattern) => {
  assert.equal(result.code, code, JSON.stringify(result));
  assert.match(result.message, pattern);
};

test('streaming, and bytes where the type is wrong', async () => {
  for (const source of ['/model.wasm', `${origin}/model.wasm`, '/octets.wasm'])
    assert.deepEqual(await attempt(source), { variant: null, outputs }, source);
  for (const source of ['/model.wasm', '/octets.wasm'])
    assert.deepEqual(await attempt(source, { response: true }), { variant: null, outputs }, source);
});

test('the best variant, or the one asked for', async () => {
  const map = { baseline: '/model.wasm', simd128: '/simd128.wasm', 'relaxed-simd': '/relaxed-simd.wasm' };
  assert.deepEqual(await attempt(map), { variant: 'relaxed-simd', outputs });
  assert.deepEqual(await attempt(map, { variant: 'simd128' }), { variant: 'simd128', outputs });
  assert.deepEqual(await attempt({ baseline: '/octets.wasm' }), { variant: 'baseline', outputs });
});

test('what goes wrong on servers', async () => {
  failure(await attempt('/fallback.wasm'), 'CORRUPT', /fallback\.wasm \(HTTP 200 OK, text\/html\): got an HTML page/);
  failure(await attempt('/lying.wasm'), 'CORRUPT', /lying\.wasm .*got an HTML page/);
  failure(await attempt('/lying.wasm', { response: true }), 'CORRUPT', /lying\.wasm .*got an HTML page/);
  failure(await attempt('/absent.wasm'), 'NOT_FOUND', /absent\.wasm \(HTTP 404 Not Found, text\/html\)/);
  failure(await attempt('http://127.0.0.1:1/model.wasm'), 'IO', /VmpkError: module: cannot fetch http:\/\/127\.0\.0\.1:1/);
  failure(await attempt('/model.wasm', { weights: '/short.weights' }), 'CORRUPT', /size is 1000 when it should be 262144/);
  failure(await attempt('/model.wasm', { weights: '/absent' }), 'NOT_FOUND', /weights from .*HTTP 404/);
});

test('a policy that forbids WebAssembly is told', async () => {
  await page.goto(`${origin}/strict`);
  failure(await attempt('/model.wasm'), 'UNSUPPORTED', /Content Security Policy|unsafe-eval/);
});
