//===- Jit.cpp - the shared module run in this process --------------------------------------------------===//
#include "packager/tool/Executable.h"

#include "targets/jit/Jit.h"
#include "vmpk/abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/AlignOf.h"
#include "llvm/Support/Alignment.h"

#include <cstdlib>

using namespace llvm;

namespace vmpack::tool {
namespace {

struct Free {
  void operator()(void *memory) const { std::free(memory); }
};

class JitExecutable final : public Executable {
public:
  JitExecutable(const targets::SharedModule &module, std::unique_ptr<targets::JitModule> jit, const vmpk_entry_t &entry)
      : module(module), jit(std::move(jit)), entry(entry) {}

  const targets::Function &signature() const override { return module.functions.front(); }

  Error bind(std::vector<Tensor> given) override {
    const targets::Function &function = signature();
    if (given.size() != function.inputs.size())
      return userError(Twine(given.size()) + " inputs when there should be " + Twine(function.inputs.size()));
    dims.assign(function.dims.size(), -1);
    for (auto [want, tensor] : zip(function.inputs, given))
      if (Error error = check(want, tensor))
        return error;
    inputs = std::move(given);
    return measure();
  }

  Error invoke() override {
    std::vector<vmpk_buffer_t> in, out;
    for (Tensor &tensor : inputs)
      in.push_back({{tensor.bytes.data()}, tensor.bytes.size()});
    for (Tensor &tensor : results)
      out.push_back({{tensor.bytes.data()}, tensor.bytes.size()});
    vmpk_call_t call{};
    call.size = sizeof call;
    call.arena = arena.get();
    call.arena_size = arenaSize;
    call.weights = entry.weights ? entry.weights : module.weights.data();
    call.dims = dims.data();
    call.inputs = in.data();
    call.outputs = out.data();
    if (vmpk_status_t status = entry.invoke(&call))
      return make_error<InternalError>("invoke answers status " + std::to_string(status));
    return Error::success();
  }

  ArrayRef<Tensor> outputs() const override { return results; }

  Expected<std::vector<DispatchTime>> profile() override { return userError("no profile"); }

private:
  Error check(const targets::Tensor &want, const Tensor &got) {
    if (got.dtype != want.dtype || got.dims.size() != want.dims.size())
      return userError("input '" + want.name + "' is " + describe(got.dtype, got.dims) + " when it should be " +
                       dtypeName(want.dtype) + " of rank " + Twine(want.dims.size()));
    for (auto [entry, size] : zip(want.dims, got.dims)) {
      int64_t &known = entry < 0 ? dims[static_cast<size_t>(-1 - entry)] : const_cast<int64_t &>(entry);
      if (entry < 0 && known < 0)
        known = size;
      if (known != size)
        return userError("input '" + want.name + "' has a dim of " + Twine(size) + " when it should be " +
                         Twine(known));
    }
    return Error::success();
  }

  Error measure() {
    const targets::Function &function = signature();
    std::vector<int64_t> outputDims;
    for (const targets::Tensor &output : function.outputs)
      outputDims.insert(outputDims.end(), output.dims.size(), 0);
    vmpk_measured_t measured{};
    measured.size = sizeof measured;
    measured.output_dims = outputDims.data();
    if (vmpk_status_t status = entry.measure(0, dims.data(), &measured))
      return make_error<InternalError>("measure answers status " + std::to_string(status));
    arenaSize = measured.arena_size;
    arena.reset(static_cast<uint8_t *>(std::aligned_alloc(VMPK_ALIGNMENT, alignTo(arenaSize + 1, VMPK_ALIGNMENT))));
    results.clear();
    auto dim = outputDims.begin();
    for (const targets::Tensor &output : function.outputs) {
      Tensor tensor{output.name, output.dtype, {dim, dim + static_cast<ptrdiff_t>(output.dims.size())}, {}};
      dim += static_cast<ptrdiff_t>(output.dims.size());
      auto size = byteSize(tensor.dtype, tensor.dims);
      if (!size)
        return size.takeError();
      tensor.bytes.resize(*size);
      results.push_back(std::move(tensor));
    }
    return Error::success();
  }

  const targets::SharedModule &module;
  std::unique_ptr<targets::JitModule> jit;
  vmpk_entry_t entry;
  std::vector<int64_t> dims;
  std::vector<Tensor> inputs, results;
  std::unique_ptr<uint8_t, Free> arena;
  uint64_t arenaSize = 0;
};

} // namespace

Expected<std::unique_ptr<Executable>> openJit(const targets::SharedModule &module, const OpenOptions &options) {
  auto jit = targets::JitModule::create(module);
  if (!jit)
    return make_error<InternalError>(toString(jit.takeError()));
  vmpk_entry_t entry{};
  entry.size = sizeof entry;
  if (vmpk_status_t status = (*jit)->query()(VMPK_ABI_VERSION, &entry))
    return make_error<InternalError>("query answers status " + std::to_string(status));
  return std::make_unique<JitExecutable>(module, std::move(*jit), entry);
}

Expected<std::unique_ptr<Executable>> openSharedObject(StringRef path, const OpenOptions &) {
  return userError("'" + path + "': this build has no loaders");
}

Expected<std::unique_ptr<Executable>> openBundle(StringRef path, const OpenOptions &) {
  return userError("'" + path + "': this build has no loaders");
}

} // namespace vmpack::tool
