// A C program that uses nothing but a model's header and object: it reads raw inputs, calls PREFIX_run, writes raw outputs.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

const cTypes = { float32: 'float', float64: 'double', int64: 'int64_t', int32: 'int32_t', int8: 'int8_t', uint8: 'uint8_t', bool: 'uint8_t' };

/** Arguments: program FOLDER INPUT...; writes FOLDER/output_I.raw. The header's dims are taken from the model's table. */
export function typedProgram(model, header, prefix, { inputs, outputs }) {
  const text = readFileSync(header, 'utf8');
  const dims = Object.entries(model.pack).filter(([, bounds]) => bounds.includes('..')).map(([name]) => `INT64_C(${model.dims[name]})`);
  const macro = text.match(/#define (VMPK_\w+_ARENA_BYTES) /)?.[1];
  const arena = macro ? `  uint64_t arena_size = ${macro};\n`
    : `  uint64_t arena_size = 0;\n  if (${prefix}_measure(${[...dims, '&arena_size', 'NULL'].join(', ')}) != 0)\n    return 2;\n`;
  const size = tensor => `${tensor.data.byteLength}u`;
  const calls = [...inputs.map((_, i) => `in${i}`), ...outputs.map((_, i) => `out${i}`), ...dims, 'arena'];
  return `#include "${basename(header)}"
#include <stdio.h>
#include <stdlib.h>

static void *room(uint64_t size) { return aligned_alloc(64, (size_t)(size / 64 + 1) * 64); }
static void *load(const char *path, size_t size) {
  void *bytes = room(size);
  FILE *file = fopen(path, "rb");
  if (!file || fread(bytes, 1, size, file) != size)
    exit(3);
  fclose(file);
  return bytes;
}
static void store(const char *folder, int index, const void *bytes, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/output_%d.raw", folder, index);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
    exit(4);
}
int main(int argc, char **argv) {
  if (argc != ${2 + inputs.length})
    return 1;
${arena}  void *arena = room(arena_size);
${inputs.map(({ tensor }, i) => `  const ${cTypes[tensor.type]} *in${i} = load(argv[${2 + i}], ${size(tensor)});`).join('\n')}
${outputs.map(({ tensor }, i) => `  ${cTypes[tensor.type]} *out${i} = room(${size(tensor)});`).join('\n')}
  int status = ${prefix}_run(${calls.join(', ')});
  if (status != 0) {
    fprintf(stderr, "status %d\\n", status);
    return 5;
  }
${outputs.map(({ tensor }, i) => `  store(argv[1], ${i}, out${i}, ${size(tensor)});`).join('\n')}
  return 0;
}
`;
}
