// How each kind of artifact is executed. A kind takes a packaged model and answers its outputs as tensors; adding a target
// is adding a row to `kinds`.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readNpy } from '../models/tensors.mjs';
import { androidVariant } from './bundle.mjs';
import { withPage } from './chromium.mjs';
import { rawInputs, rawOutputs, tensorsOfBytes } from './golden.mjs';
import { run } from './process.mjs';
import { typedProgram } from './typed.mjs';

const cc = process.env.CC ?? 'cc', aarch64 = 'aarch64-linux-gnu-gcc';
const qemu = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'];
const flags = c => ['-std=gnu11', '-O1', '-Wall', '-Wextra', '-Werror', `-I${join(c.root, 'runtime/include')}`];
const hostSource = c => join(c.root, 'tests/e2e/host.c');

/** A folder of this kind's and model's own, empty. */
function workFolder(c, kind, model) {
  const folder = join(c.work, 'run', kind, model.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** The outputs of tests/e2e/host.c, started by `command`. */
function runHost(command, module, folder, inputs, env = {}) {
  const [program, ...args] = command;
  return rawOutputs(run(program, [...args, folder, module, ...rawInputs(inputs, folder)], { env: { ...process.env, ...env } }));
}

function sources(c, ...folders) {
  return folders.flatMap(folder => readdirSync(join(c.root, 'runtime', folder)).filter(name => name.endsWith('.c'))
    .map(name => join(c.root, 'runtime', folder, name)));
}

/** Everything of run_query's protocol: raw inputs in, raw outputs out. */
function runQuery(command, image, symbol, model, { inputs, outputs }, weights = '-') {
  const bytes = Buffer.concat(inputs.map(({ tensor: { data } }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength)));
  const [program, ...args] = command;
  const dims = Object.entries(model.pack).filter(([, bounds]) => bounds.includes('..')).map(([name]) => String(model.dims[name]));
  return tensorsOfBytes(run(program, [...args, image, symbol, '0', weights, ...dims], { input: bytes, encoding: 'buffer' }), outputs);
}

async function jit(c, model, out, { inputs, outputs }) {
  const folder = workFolder(c, 'jit', model);
  const dims = Object.entries(model.dims).flatMap(([name, value]) => ['--dim', `${name}=${value}`]);
  run(c.vmpack, ['run', join(c.models, model.file), ...dims, '--output-dir', folder,
                 ...inputs.flatMap(({ name, file }) => ['--input', `${name}=${file}`])]);
  return outputs.map((_, i) => readNpy(join(folder, `output_${i}.npy`)));
}

/** An artifact that `vmpack run` opens by its own loader. */
const byVmpackRun = (kind, artifact) => async (c, model, out, { inputs, outputs }) => {
  const folder = workFolder(c, kind, model);
  run(c.vmpack, ['run', join(out, artifact(model)), '--output-dir', folder,
                 ...inputs.flatMap(({ name, file }) => ['--input', `${name}=${file}`])]);
  return outputs.map((_, i) => readNpy(join(folder, `output_${i}.npy`)));
};

const linuxSo = level => async (c, model, out, { inputs }) =>
  runHost([join(c.build, 'bin', 'e2e_host')], join(out, 'linux-so', `${model.name}.${level}.so`),
          workFolder(c, `linux-so-${level}`, model), inputs);

async function androidBundle(c, model, out, { inputs }) {
  return runHost([join(c.build, 'bin', 'e2e_host')], join(out, 'android-so', `${model.name}.vmpb`),
                 workFolder(c, 'android-bundle', model), inputs);
}

/** The bundle's arm64 code in a process of that machine, with the runtime cross-compiled. */
async function androidArm64(c, model, out, { inputs }) {
  const folder = workFolder(c, 'android-so', model), host = join(c.work, 'host.aarch64');
  run(aarch64, [...flags(c), hostSource(c), ...sources(c, 'src'), join(c.root, 'runtime/hosts/serial.c'),
                ...['code', 'cpu', 'elf', 'shared_object'].map(name => join(c.root, `runtime/loaders/${name}.c`)),
                '-ldl', '-o', host]);
  const { code, weights } = androidVariant(join(out, 'android-so', `${model.name}.vmpb`), 'arm64-v8a');
  const library = join(folder, `lib${model.name}.so`), blob = join(folder, 'weights');
  writeFileSync(library, code);
  if (weights) writeFileSync(blob, weights);
  return runHost([...qemu, host], library, folder, inputs, { VMPK_WEIGHTS: blob });
}

const linuxStatic = level => async (c, model, out, { inputs }) => {
  const folder = workFolder(c, `linux-static-${level}`, model), program = join(folder, 'program');
  run(cc, [...flags(c), `-DVMPK_HOST_QUERY=vmpk_${model.name}_query`, hostSource(c),
           join(out, 'linux-static', level, `lib${model.name}.a`), join(c.build, 'runtime', 'libvmpk_runtime.a'), '-o', program]);
  return runHost([program], 'linked', folder, inputs);
};

/** The archive and its header's typed call, in a program that has nothing else. */
async function typedHeader(c, model, out, expected) {
  const folder = workFolder(c, 'typed-header', model), program = join(folder, 'program');
  const source = join(folder, 'main.c');
  writeFileSync(source, typedProgram(model, join(out, 'linux-static/include', `${model.name}.h`), `vmpk_${model.name}`, expected));
  run(cc, [...flags(c), `-I${join(out, 'linux-static/include')}`, source,
           join(out, 'linux-static', 'x86-64-v2', `lib${model.name}.a`), '-o', program]);
  return runTyped(program, folder, expected);
}

function runTyped(program, folder, { inputs, outputs }) {
  const files = rawInputs(inputs, folder).map(argument => argument.slice(0, argument.lastIndexOf(':')));
  run(program, [folder, ...files]);
  return outputs.map(({ tensor }, i) => tensorsOfBytes(readFileSync(join(folder, `output_${i}.raw`)), [{ tensor }])[0]);
}

/** Bytes of an ELF object's sections that are neither weights nor for linkers. */
function codeBytes(object) {
  const rows = run('size', ['-A', object]).split('\n').map(line => line.trim().split(/\s+/));
  return rows.filter(([name]) => /^\.(text|rodata|eh_frame)/.test(name)).reduce((sum, [, size]) => sum + Number(size), 0);
}

/** One object and header, nothing undefined, no library. */
async function runtimeless(c, model, out, expected) {
  const folder = workFolder(c, 'runtimeless', model), program = join(folder, 'program');
  const dims = Object.entries(model.pack).flatMap(([name, bounds]) => ['--dim', `${name}=${bounds}`]);
  run(c.vmpack, [join(c.models, model.file), '--target=object', '--runtimeless', '--triple=x86_64-unknown-linux-gnu',
                 '--cpu=x86-64-v2', '--name', model.name, '-o', folder, ...dims]);
  const object = join(folder, 'object', `${model.name}.o`);
  const undefinedSymbols = run('nm', ['-u', object]).trim();
  if (undefinedSymbols) throw new Error(`undefined symbols: ${undefinedSymbols}`);
  console.log(`        ${model.name}: ${codeBytes(object)} bytes of code and tables without weights`);
  const source = join(folder, 'main.c');
  writeFileSync(source, typedProgram(model, join(folder, 'object', `${model.name}.h`), model.name, expected));
  run(cc, [...flags(c).filter(flag => !flag.startsWith('-I')), `-I${join(folder, 'object')}`, source, object, '-o', program]);
  return runTyped(program, folder, expected);
}

/** The iOS archive linked as an app's linker would, its arm64 code run by tests/targets/macho_loader.c. */
async function iosStatic(c, model, out, expected) {
  const folder = workFolder(c, 'ios-static', model), image = join(folder, 'image'), symbol = `vmpk_${model.name}_query`;
  run('ld64.lld-22', ['-arch', 'arm64', '-platform_version', 'ios', '15.0', '15.0', '-dylib', '-all_load', '-dead_strip',
                      '-exported_symbol', `_${symbol}`, join(out, 'ios-static/ios-arm64', `lib${model.name}.a`), '-o', image]);
  return runQuery([...qemu, join(c.build, 'tests/targets/run_query.aarch64')], image, symbol, model, expected);
}

/** Typed arrays for the JavaScript API, from the golden inputs. */
const feeds = inputs => Object.fromEntries(inputs.map(({ name, tensor: { data, dims } }) => [name, { data, dims }]));
const tensors = (results, outputs) => outputs.map(({ name, tensor }) => ({ type: tensor.type, ...results[name] }));

const wasmNode = variant => async (c, model, out, { inputs, outputs }) => {
  const { load } = await import(pathToFileURL(join(out, 'web-wasm', `${model.name}.mjs`)));
  const loaded = await load({ variant });
  return tensors(await loaded.run(feeds(inputs)), outputs);
};

async function wasmChromium(c, model, out, { inputs, outputs }) {
  // Arrays of numbers cross the border to the page.
  const given = inputs.map(({ name, tensor: { data, dims } }) => ({ name, kind: data.constructor.name, data: Array.from(data, Number), dims }));
  const results = await withPage(join(out, 'web-wasm'), page => page.evaluate(async ({ entry, given }) => {
    const { load } = await import(entry);
    const model = await load();
    const feeds = Object.fromEntries(given.map(({ name, kind, data, dims }) => [name, { data: globalThis[kind].from(data), dims }]));
    const results = await model.run(feeds);
    return Object.fromEntries(Object.entries(results).map(([name, { data, dims }]) => [name, { data: Array.from(data, Number), dims }]));
  }, { entry: `/${model.name}.mjs`, given }));
  return outputs.map(({ name, tensor }) => ({ type: tensor.type, dims: results[name].dims, data: tensor.data.constructor.from(results[name].data) }));
}

/** Debian's Emscripten finds its packages by NODE_PATH, and reads files with a fetch of its own. */
function emscripten(command, args, folder) {
  const env = { ...process.env, NODE_OPTIONS: '--no-experimental-fetch' };
  if (existsSync('/usr/share/nodejs')) env.NODE_PATH = '/usr/share/nodejs';
  return run(command, args, { cwd: folder, env });
}
const emscriptenFlags = ['-sNODERAWFS=1', '-sALLOW_MEMORY_GROWTH=1', '-sEXIT_RUNTIME=1'];
const emscriptenRuntime = c => [...sources(c, 'src'), join(c.root, 'runtime/hosts/serial.c')];

async function webStatic(c, model, out, { inputs }) {
  const folder = workFolder(c, 'web-static', model), program = join(folder, 'host.js');
  emscripten('emcc', [...flags(c), `-DVMPK_HOST_QUERY=vmpk_${model.name}_query`, hostSource(c), ...emscriptenRuntime(c),
                      join(out, 'web-static/simd128', `lib${model.name}.a`), ...emscriptenFlags, '-o', program], folder);
  return rawOutputs(emscripten(process.execPath, [program, folder, 'linked', ...rawInputs(inputs, folder)], folder));
}

async function webSide(c, model, out, { inputs }) {
  const folder = workFolder(c, 'web-side', model), program = join(c.work, 'web-side-host.js');
  if (!existsSync(program))
    emscripten('emcc', [...flags(c), hostSource(c), ...emscriptenRuntime(c), join(c.root, 'runtime/loaders/emscripten.c'),
                        '-sMAIN_MODULE=2', ...emscriptenFlags, '-o', program], c.work);
  const module = join(out, 'web-side', `${model.name}.simd128.wasm`);
  return rawOutputs(emscripten(process.execPath, [program, folder, module, ...rawInputs(inputs, folder)], folder));
}

/** name: {target to package for (null: none), how it is executed, run(context, model, package folder, golden)}. */
export const kinds = {
  jit: { target: null, how: 'vmpack run', run: jit },
  'linux-so-v2': { target: 'linux-so', how: 'dlopen by the C runtime', run: linuxSo('x86-64-v2') },
  'linux-so-v3': { target: 'linux-so', how: 'dlopen by the C runtime', run: linuxSo('x86-64-v3') },
  'linux-static-v2': { target: 'linux-static', how: 'linked by cc, C runtime', run: linuxStatic('x86-64-v2') },
  'linux-static-v3': { target: 'linux-static', how: 'linked by cc, C runtime', run: linuxStatic('x86-64-v3') },
  'typed-header': { target: 'linux-static', how: 'linked by cc, header alone', run: typedHeader },
  runtimeless: { target: null, how: 'linked by cc, no runtime', run: runtimeless },
  'android-so': { target: 'android-so', how: 'arm64-v8a of the bundle, dlopen under qemu-aarch64', run: androidArm64 },
  'android-bundle': { target: 'android-so', how: 'the bundle in memory, its x86_64 variant', run: androidBundle },
  'android-run': { target: 'android-so', how: 'vmpack run', run: byVmpackRun('android-run', m => `android-so/${m.name}.vmpb`) },
  'ios-static': { target: 'ios-static', how: 'linked by ld64.lld, arm64 code under qemu-aarch64', run: iosStatic },
  'wasm-baseline': { target: 'web-wasm', how: 'node, variant baseline', run: wasmNode('baseline') },
  'wasm-node': { target: 'web-wasm', how: 'node, best variant', run: wasmNode(undefined) },
  'wasm-run': { target: 'web-wasm', how: 'vmpack run through node', run: byVmpackRun('wasm-run', () => 'web-wasm') },
  'wasm-chromium': { target: 'web-wasm', how: 'headless Chromium', run: wasmChromium },
  'web-static': { target: 'web-static', how: 'linked by Emscripten, node', run: webStatic },
  'web-side': { target: 'web-side', how: 'dlopen by an Emscripten app, node', run: webSide },
};
