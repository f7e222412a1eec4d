//===- Open.cpp - what the command line names, ready to compute -----------------------------------------===//
#include "packager/tool/Executable.h"
#include "packager/tool/FileKind.h"

#include <chrono>

using namespace llvm;

namespace vmpack::tool {
namespace {

/// The JIT and the shared module that it reads its weights from.
class CompiledModel final : public Executable {
public:
  static Expected<std::unique_ptr<Executable>> create(targets::SharedModule compiled, const OpenOptions &options) {
    auto model = std::make_unique<CompiledModel>();
    model->module = std::move(compiled);
    auto jit = openJit(model->module, options);
    if (!jit)
      return jit.takeError();
    model->jit = std::move(*jit);
    return model;
  }

  const targets::Function &signature() const override { return jit->signature(); }
  Error bind(std::vector<Tensor> inputs) override { return jit->bind(std::move(inputs)); }
  Error invoke() override { return jit->invoke(); }
  ArrayRef<Tensor> outputs() const override { return jit->outputs(); }
  Expected<std::vector<DispatchTime>> profile() override { return jit->profile(); }

private:
  targets::SharedModule module;
  std::unique_ptr<Executable> jit;
};

} // namespace

Expected<Timing> Executable::time(uint64_t calls) {
  using Clock = std::chrono::steady_clock;
  Timing timing;
  timing.calls.reserve(calls);
  for (uint64_t i = 0; i < calls; ++i) {
    auto start = Clock::now();
    if (Error error = invoke())
      return error;
    timing.calls.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return timing;
}

Expected<std::unique_ptr<Executable>> open(const Options &options, const Log &log) {
  const std::string &path = options.models.front();
  auto kind = identify(path);
  if (!kind)
    return kind.takeError();
  switch (*kind) {
  case FileKind::Bundle:
    log("bundle: " + path);
    return openBundle(path, {options.threads});
  case FileKind::SharedObject:
    log("shared object: " + path);
    return openSharedObject(path, {options.threads});
  case FileKind::Folder:
    log("web-wasm folder: " + path);
    return openWebFolder(path);
  case FileKind::OtherArtifact:
    return userError("'" + path + "' is nothing that can be run: a model, a bundle, a .so or a web-wasm folder");
  case FileKind::Model:
    break;
  }
  Compiler compiler(log, options.verbose);
  auto module = compiler.compile({path, moduleName(path), options.dims, options.winograd});
  if (!module)
    return module.takeError();
  log("codegen: jit");
  return CompiledModel::create(std::move(*module), {options.threads});
}

} // namespace vmpack::tool
