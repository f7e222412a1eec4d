//===- Native.cpp - code of this process, through the C runtime -----------------------------------------===//
//
// The JIT, a .so and a bundle differ in how their module comes to be; from there on all is vmpk/vmpk.h.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/tool/Executable.h"

#include "targets/jit/Jit.h"
#include "vmpk/vmpk.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace vmpack::tool {
namespace {

/// Frees a runtime object by its own function.
template <auto Function> struct Release {
  template <typename T> void operator()(T *object) const { Function(object); }
};
using ModulePtr = std::unique_ptr<vmpk_module_t, Release<vmpk_module_release>>;
using InstancePtr = std::unique_ptr<vmpk_instance_t, Release<vmpk_instance_destroy>>;
using PoolPtr = std::unique_ptr<vmpk_thread_pool_t, Release<vmpk_thread_pool_destroy>>;
using TracePtr = std::unique_ptr<vmpk_trace_t, Release<vmpk_trace_destroy>>;

/// A failed call's words. What the runtime calls a broken invariant is ours.
Error failure(vmpk_status_t status, const vmpk_error_t &error) {
  std::string message = error.message[0] ? error.message : vmpk_status_text(status);
  if (status == VMPK_STATUS_INTERNAL)
    return make_error<InternalError>(message);
  return userError(message);
}

std::string textOf(vmpk_text_t text) { return std::string(text.data, text.size); }

/// The first public function of a module, as the packager describes functions.
targets::Function describeFunction(const vmpk_module_t *module) {
  vmpk_function_info_t info;
  vmpk_module_function(module, 0, &info);
  targets::Function function;
  function.name = textOf(info.name);
  function.arenaSize = info.arena_size;
  for (uint32_t i = 0; i < info.dim_count; ++i) {
    vmpk_dim_info_t dim;
    vmpk_module_dim(module, 0, i, &dim);
    function.dims.push_back({textOf(dim.name), dim.minimum, dim.maximum});
  }
  auto tensors = [&](uint32_t count, auto get, std::vector<targets::Tensor> &out) {
    for (uint32_t i = 0; i < count; ++i) {
      vmpk_tensor_info_t tensor;
      get(module, 0, i, &tensor);
      out.push_back({textOf(tensor.name), tensor.dtype, {tensor.dims, tensor.dims + tensor.rank}});
    }
  };
  tensors(info.input_count, vmpk_module_input, function.inputs);
  tensors(info.output_count, vmpk_module_output, function.outputs);
  return function;
}

/// What a module needs to stay in memory as long as it is used.
struct Backing {
  std::unique_ptr<targets::JitModule> jit;
  std::unique_ptr<MemoryBuffer> bytes, weights;
};

class NativeExecutable final : public Executable {
public:
  static Expected<std::unique_ptr<Executable>> create(Backing backing, ModulePtr module, const OpenOptions &options) {
    auto executable = std::make_unique<NativeExecutable>();
    executable->backing = std::move(backing);
    executable->module = std::move(module);
    vmpk_error_t error{};
    if (options.threads > 1) {
      vmpk_thread_pool_t *pool = nullptr;
      if (auto status = vmpk_thread_pool_create(static_cast<uint32_t>(options.threads), nullptr, &pool, &error))
        return failure(status, error);
      executable->pool.reset(pool);
      executable->host = vmpk_thread_pool_host(pool);
    }
    executable->function = describeFunction(executable->module.get());
    if (Error failed = createInstance(*executable, executable->host, executable->instance))
      return failed;
    return executable;
  }

  const targets::Function &signature() const override { return function; }

  Error bind(std::vector<Tensor> given) override {
    if (given.size() != function.inputs.size())
      return userError(Twine(given.size()) + " inputs when there should be " + Twine(function.inputs.size()));
    boundInputs = std::move(given);
    inputs.clear();
    for (Tensor &tensor : boundInputs) {
      if (tensor.dims.size() > VMPK_MAX_RANK)
        return userError("input '" + tensor.name + "' has rank " + Twine(tensor.dims.size()) +
                         " when it should be at most " + Twine(VMPK_MAX_RANK));
      vmpk_tensor_t view{tensor.bytes.data(), tensor.bytes.size(), tensor.dtype, uint32_t(tensor.dims.size()), {}};
      copy(tensor.dims, view.dims);
      inputs.push_back(view);
    }
    return makeOutputs();
  }

  Error invoke() override { return invokeOn(instance.get()); }

  ArrayRef<Tensor> outputs() const override { return boundOutputs; }

  Expected<std::vector<DispatchTime>> profile() override {
    vmpk_module_info_t info;
    vmpk_module_info(module.get(), &info);
    vmpk_error_t error{};
    vmpk_trace_t *made = nullptr;
    if (auto status = vmpk_trace_create(host, info.dispatch_count, nullptr, &made, &error))
      return failure(status, error);
    TracePtr trace(made);
    InstancePtr watched;
    if (Error failed = createInstance(*this, vmpk_trace_host(trace.get()), watched))
      return failed;
    // The first call touches a new arena: it is not what is asked for.
    if (Error failed = invokeOn(watched.get()))
      return failed;
    vmpk_trace_reset(trace.get());
    if (Error failed = invokeOn(watched.get()))
      return failed;
    std::vector<DispatchTime> times;
    for (uint32_t i = 0; i < info.dispatch_count; ++i) {
      vmpk_dispatch_info_t dispatch;
      vmpk_module_dispatch(module.get(), i, &dispatch);
      vmpk_trace_entry_t entry = vmpk_trace_entry(trace.get(), i);
      if (entry.count)
        times.push_back({textOf(dispatch.name), textOf(dispatch.location), entry.count,
                         static_cast<double>(entry.nanoseconds) / 1e6});
    }
    return times;
  }

private:
  static Error createInstance(NativeExecutable &self, const vmpk_host_t *host, InstancePtr &out) {
    vmpk_error_t error{};
    vmpk_instance_t *made = nullptr;
    if (auto status = vmpk_instance_create(self.module.get(), host, nullptr, &made, &error))
      return failure(status, error);
    out.reset(made);
    return Error::success();
  }

  Error makeOutputs() {
    outputViews.assign(function.outputs.size(), {});
    vmpk_error_t error{};
    if (auto status = vmpk_instance_measure(instance.get(), 0, inputs.data(), uint32_t(inputs.size()),
                                            outputViews.data(), uint32_t(outputViews.size()), nullptr, &error))
      return failure(status, error);
    boundOutputs.clear();
    for (auto [view, output] : zip(outputViews, function.outputs)) {
      boundOutputs.push_back({output.name, view.dtype, {view.dims, view.dims + view.rank}, {}});
      boundOutputs.back().bytes.resize(view.size);
      view.data = boundOutputs.back().bytes.data();
    }
    return Error::success();
  }

  Error invokeOn(vmpk_instance_t *chosen) {
    vmpk_error_t error{};
    if (auto status = vmpk_instance_invoke(chosen, 0, inputs.data(), uint32_t(inputs.size()), outputViews.data(),
                                           uint32_t(outputViews.size()), &error))
      return failure(status, error);
    return Error::success();
  }

  // Destroyed from the last to the first: the instance goes before its module, the module before its code.
  Backing backing;
  PoolPtr pool;
  const vmpk_host_t *host = vmpk_serial_host();
  ModulePtr module;
  InstancePtr instance;
  targets::Function function;
  std::vector<Tensor> boundInputs, boundOutputs;
  std::vector<vmpk_tensor_t> inputs, outputViews;
};

/// Gives a module the NAME.weights beside its artifact, when it has none inside.
Error addWeights(StringRef artifact, vmpk_module_t *module, Backing &backing) {
  vmpk_module_info_t info;
  vmpk_module_info(module, &info);
  if (!info.weights_missing)
    return Error::success();
  SmallString<128> path(sys::path::parent_path(artifact));
  sys::path::append(path, textOf(info.name) + ".weights");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/false,
                                      Align(VMPK_ALIGNMENT));
  if (!buffer)
    return userError("'" + artifact + "' needs its weights from '" + path + "': " + buffer.getError().message());
  backing.weights = std::move(*buffer);
  vmpk_error_t error{};
  if (auto status =
          vmpk_module_set_weights(module, backing.weights->getBufferStart(), backing.weights->getBufferSize(), &error))
    return failure(status, error);
  return Error::success();
}

} // namespace

Expected<std::unique_ptr<Executable>> openJit(const targets::SharedModule &shared, const OpenOptions &options) {
  Backing backing;
  auto jit = targets::JitModule::create(shared);
  if (!jit)
    return make_error<InternalError>(toString(jit.takeError()));
  backing.jit = std::move(*jit);
  vmpk_error_t error{};
  vmpk_module_t *module = nullptr;
  if (vmpk_module_create(backing.jit->query(), nullptr, &module, &error))
    return make_error<InternalError>(std::string("the JIT's module: ") + error.message);
  return NativeExecutable::create(std::move(backing), ModulePtr(module), options);
}

Expected<std::unique_ptr<Executable>> openSharedObject(StringRef path, const OpenOptions &options) {
  Backing backing;
  vmpk_error_t error{};
  vmpk_module_t *opened = nullptr;
  if (auto status = vmpk_dynamic_module_open(path.str().c_str(), nullptr, &opened, &error))
    return failure(status, error);
  ModulePtr module(opened);
  if (Error failed = addWeights(path, opened, backing))
    return failed;
  return NativeExecutable::create(std::move(backing), std::move(module), options);
}

Expected<std::unique_ptr<Executable>> openBundle(StringRef path, const OpenOptions &options) {
  Backing backing;
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false, /*IsVolatile=*/false,
                                      Align(VMPK_ALIGNMENT));
  if (!buffer)
    return userError("cannot read '" + path + "': " + buffer.getError().message());
  backing.bytes = std::move(*buffer);
  vmpk_error_t error{};
  vmpk_module_t *opened = nullptr;
  if (auto status = vmpk_dynamic_module_open_bundle(backing.bytes->getBufferStart(), backing.bytes->getBufferSize(),
                                                    nullptr, &opened, &error))
    return failure(status, error);
  ModulePtr module(opened);
  if (Error failed = addWeights(path, opened, backing))
    return failed;
  return NativeExecutable::create(std::move(backing), std::move(module), options);
}

} // namespace vmpack::tool
