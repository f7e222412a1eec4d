#!/usr/bin/env node
// Writes golden inputs and outputs by onnxruntime: golden.mjs MODELS_DIR OUT_DIR [NAME...]
//   OUT_DIR/NAME/input_I.npy, output_I.npy and signature.json ({model, dims, inputs: [name], outputs: [name]})
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ort from 'onnxruntime-node';
import { seededTensor, writeNpy } from './tensors.mjs';

const [modelsDir, outDir, ...names] = process.argv.slice(2);
const table = JSON.parse(readFileSync(new URL('models.json', import.meta.url)));

for (const model of table.filter(m => names.length === 0 || names.includes(m.name))) {
  const path = join(modelsDir, model.file);
  const session = await ort.InferenceSession.create(path, { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
  const folder = join(outDir, model.name);
  mkdirSync(folder, { recursive: true });
  const feeds = {};
  session.inputMetadata.forEach(({ name, type, shape }, ordinal) => {
    const dims = shape.map(d => (typeof d === 'number' ? d : model.dims[d]));
    const tensor = seededTensor(type, dims, 1, ordinal);
    writeNpy(join(folder, `input_${ordinal}.npy`), tensor);
    feeds[name] = new ort.Tensor(type, tensor.data, dims);
  });
  const results = await session.run(feeds);
  session.outputNames.forEach((name, i) => writeNpy(join(folder, `output_${i}.npy`), results[name]));
  writeFileSync(join(folder, 'signature.json'), JSON.stringify(
    { model: path, dims: model.dims, inputs: session.inputNames, outputs: session.outputNames }, null, 1));
  const first = results[session.outputNames[0]].data;
  console.log(`${model.name}: ${session.outputNames.length} outputs, first in [${first.reduce((a, b) => Math.min(a, b), Infinity)}, ${first.reduce((a, b) => Math.max(a, b), -Infinity)}]`);
}
