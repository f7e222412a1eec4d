// Runs driver.c's WebAssembly build: node driver.mjs MODULE.wasm
import {readFile} from 'node:fs/promises';

let memory;
const env = {
  write(address, size) { process.stdout.write(Buffer.from(memory.buffer, address, size).toString()); },
};
const {instance} = await WebAssembly.instantiate(await readFile(process.argv[2]), {env});
memory = instance.exports.memory;
instance.exports.run();
