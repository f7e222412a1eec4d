//===- Node.cpp - a web-wasm folder, run by node ----------------------------------------------------------===//
//
//   call.json, input_I.raw ──► node call.mjs ──► result.json, output_I.raw      in a temporary folder
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/tool/Executable.h"

#include "targets/Inspect.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace vmpack::tool {
namespace {

constexpr StringLiteral script = R"js(
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const views = { f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array, i8: Int8Array, i16: Int16Array,
  i32: Int32Array, i64: BigInt64Array, u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, bool: Uint8Array };
const folder = process.argv[2];
const call = JSON.parse(readFileSync(`${folder}/call.json`));
try {
  const inputs = Object.fromEntries(call.inputs.map(({ name, dtype, dims }, i) => {
    const bytes = readFileSync(`${folder}/input_${i}.raw`);
    const data = new views[dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    return [name, { data, dims }];
  }));
  const begin = performance.now();
  const model = await (await import(pathToFileURL(call.entry))).load();
  const load_ms = performance.now() - begin, times = [];
  let outputs;
  for (let i = 0; i < call.calls; ++i) {
    const start = performance.now();
    outputs = await model.run(inputs, { function: call.function });
    times.push(performance.now() - start);
  }
  const dims = call.outputs.map((name, i) => {
    const { data, dims } = outputs[name];
    writeFileSync(`${folder}/output_${i}.raw`, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    return dims;
  });
  writeFileSync(`${folder}/result.json`, JSON.stringify({ load_ms, times, dims }));
} catch (error) {
  writeFileSync(`${folder}/result.json`, JSON.stringify({ error: error.message }));
}
)js";

/// A folder that is gone with its owner.
class TemporaryFolder {
public:
  static Expected<std::unique_ptr<TemporaryFolder>> create() {
    auto folder = std::make_unique<TemporaryFolder>();
    if (std::error_code code = sys::fs::createUniqueDirectory("vmpack", folder->path))
      return userError("cannot make a temporary folder: " + code.message());
    return folder;
  }
  ~TemporaryFolder() {
    if (!path.empty())
      sys::fs::remove_directories(path);
  }
  std::string file(const Twine &name) const { return (path + "/" + name).str(); }

private:
  SmallString<128> path;
};

Error writeFile(StringRef path, ArrayRef<char> bytes) {
  std::error_code code;
  raw_fd_ostream out(path, code);
  if (!code) {
    out.write(bytes.data(), bytes.size());
    out.close();
    code = out.error();
    out.clear_error();
  }
  return code ? userError("cannot write '" + path + "': " + code.message()) : Error::success();
}

Expected<std::string> readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return userError("cannot read '" + path + "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

class NodeExecutable final : public Executable {
public:
  NodeExecutable(std::string node, std::string entry, targets::Function function,
                 std::unique_ptr<TemporaryFolder> folder)
      : node(std::move(node)), entry(std::move(entry)), function(std::move(function)), folder(std::move(folder)) {}

  const targets::Function &signature() const override { return function; }

  Error bind(std::vector<Tensor> given) override {
    inputs = std::move(given);
    for (auto [i, tensor] : enumerate(inputs))
      if (Error error = writeFile(folder->file("input_" + Twine(i) + ".raw"), tensor.bytes))
        return error;
    return writeFile(folder->file("call.mjs"), ArrayRef(script.data(), script.size()));
  }

  Error invoke() override {
    auto timing = time(1);
    return timing ? Error::success() : timing.takeError();
  }

  Expected<Timing> time(uint64_t calls) override {
    if (Error error = spawn(calls))
      return error;
    auto text = readFile(folder->file("result.json"));
    if (!text)
      return text.takeError();
    auto result = json::parse(*text);
    if (!result)
      return make_error<InternalError>("node: " + toString(result.takeError()));
    const json::Object &object = *result->getAsObject();
    if (auto message = object.getString("error"))
      return userError(*message);
    if (Error error = readOutputs(*object.getArray("dims")))
      return error;
    Timing timing;
    timing.load = object.getNumber("load_ms").value_or(0);
    for (const json::Value &value : *object.getArray("times"))
      timing.calls.push_back(value.getAsNumber().value_or(0));
    return timing;
  }

  ArrayRef<Tensor> outputs() const override { return results; }

  Expected<std::vector<DispatchTime>> profile() override {
    return userError("--profile watches native code; a web-wasm folder has none");
  }

private:
  /// Runs node on call.json; its own words go to files.
  Error spawn(uint64_t calls) {
    std::string text;
    raw_string_ostream stream(text);
    json::OStream json(stream);
    json.object([&] {
      json.attribute("entry", entry);
      json.attribute("function", function.name);
      json.attribute("calls", static_cast<int64_t>(calls));
      json.attributeArray("inputs", [&] {
        for (auto [tensor, input] : zip(inputs, function.inputs))
          json.object([&] {
            json.attribute("name", input.name);
            json.attribute("dtype", dtypeName(tensor.dtype));
            json.attributeArray("dims", [&] {
              for (int64_t dim : tensor.dims)
                json.value(dim);
            });
          });
      });
      json.attributeArray("outputs", [&] {
        for (const targets::Tensor &output : function.outputs)
          json.value(output.name);
      });
    });
    if (Error error = writeFile(folder->file("call.json"), text))
      return error;
    std::string program = folder->file("call.mjs"), place = folder->file(""), out = folder->file("stdout"),
                errors = folder->file("stderr"), message;
    std::optional<StringRef> redirects[] = {StringRef(), StringRef(out), StringRef(errors)};
    if (sys::ExecuteAndWait(node, {node, program, place}, std::nullopt, redirects, 0, 0, &message) == 0)
      return Error::success();
    auto words = readFile(errors);
    return userError("node failed: " + message + (words ? *words : toString(words.takeError())));
  }

  Error readOutputs(const json::Array &allDims) {
    results.clear();
    for (auto [i, output] : enumerate(function.outputs)) {
      Tensor tensor{output.name, output.dtype, {}, {}};
      if (const json::Array *dims = i < allDims.size() ? allDims[i].getAsArray() : nullptr)
        for (const json::Value &dim : *dims)
          tensor.dims.push_back(dim.getAsInteger().value_or(-1));
      auto bytes = readFile(folder->file("output_" + Twine(i) + ".raw"));
      if (!bytes)
        return bytes.takeError();
      tensor.bytes.assign(bytes->begin(), bytes->end());
      auto size = byteSize(tensor.dtype, tensor.dims);
      if (!size)
        return size.takeError();
      if (tensor.bytes.size() != *size)
        return make_error<InternalError>("node wrote " + std::to_string(tensor.bytes.size()) + " bytes of " +
                                         describe(tensor.dtype, tensor.dims));
      results.push_back(std::move(tensor));
    }
    return Error::success();
  }

  std::string node, entry;
  targets::Function function;
  std::unique_ptr<TemporaryFolder> folder;
  std::vector<Tensor> inputs, results;
};

/// The folder's entry: its one ES module beside the loader.
Expected<std::string> findEntry(StringRef folder) {
  std::vector<std::string> entries;
  std::error_code code;
  for (sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (sys::path::extension(it->path()) == ".mjs" && sys::path::filename(it->path()) != "vmpk.mjs")
      entries.push_back(it->path());
  if (entries.size() != 1)
    return userError("'" + folder + "' is no web-wasm folder: it holds " + Twine(entries.size()) +
                     " entry modules (.mjs) when it should hold one");
  SmallString<256> absolute(entries.front());
  sys::fs::make_absolute(absolute);
  return std::string(absolute);
}

} // namespace

Expected<std::unique_ptr<Executable>> openWebFolder(StringRef path) {
  auto entry = findEntry(path);
  if (!entry)
    return entry.takeError();
  auto artifact = targets::inspect(path);
  if (!artifact)
    return userError(toString(artifact.takeError()));
  const auto part = find_if(artifact->parts, [](const targets::InspectedPart &p) { return p.manifest.has_value(); });
  if (part == artifact->parts.end() || part->manifest->functions.empty())
    return userError("'" + path + "' holds no wasm module of vmpack");
  auto node = sys::findProgramByName("node");
  if (!node)
    return userError("'" + path + "' is run by node, which is not on the PATH");
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  return std::make_unique<NodeExecutable>(*node, *entry, part->manifest->functions.front(), std::move(*folder));
}

} // namespace vmpack::tool
