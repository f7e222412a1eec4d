// A headless Chromium on a page served from a folder: what the web kinds of artifacts run in.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';

const types = { '.html': 'text/html', '.mjs': 'text/javascript', '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };

/** Serves `folder` on a port of this machine; '/' is an empty page. */
function serve(folder) {
  const server = createServer((request, response) => {
    const path = join(folder, normalize(decodeURIComponent(request.url.split('?')[0])));
    if (request.url === '/') {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<!doctype html><title>vmpack</title>');
    } else if (existsSync(path) && statSync(path).isFile()) {
      response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' });
      createReadStream(path).pipe(response);
    } else {
      response.writeHead(404);
      response.end();
    }
  });
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** Calls `use(page)` with a page of an origin that serves `folder`. */
export async function withPage(folder, use) {
  const server = await serve(folder);
  const browser = await chromium.launch({
    executablePath: process.env.VMPACK_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return await use(page);
  } finally {
    await browser.close();
    server.close();
  }
}
