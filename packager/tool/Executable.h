//===- Executable.h - something that computes, wherever it came from ------------------------------------===//
//
//   model ──► Compiler ──► JIT ──┐
//   bundle, .so ──► loader ──────┼──► Executable::bind ─► invoke ─► outputs
//   web-wasm folder ──► node ────┘
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TOOL_EXECUTABLE_H
#define VMPACK_TOOL_EXECUTABLE_H

#include "packager/tool/Compiler.h"
#include "packager/tool/Tensors.h"
#include "targets/SharedModule.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace vmpack::tool {

/// What one dispatch of the schedule cost in one invoke.
struct DispatchTime {
  std::string name, location;
  uint64_t calls = 0;
  double milliseconds = 0;
};

/// What calls took, in milliseconds.
struct Timing {
  double load = 0; ///< spent behind the first call's back, where loading is lazy
  std::vector<double> calls;
};

/// One public function of a loaded module. For one thread at a time.
class Executable {
public:
  virtual ~Executable() = default;

  /// Names, dtypes and dims, with the dims' bounds.
  virtual const targets::Function &signature() const = 0;

  /// Takes the inputs, in the signature's order, and makes room for the outputs. Dtypes, ranks and dims are checked.
  virtual llvm::Error bind(std::vector<Tensor> inputs) = 0;

  /// Computes the outputs of the bound inputs; may be called again.
  virtual llvm::Error invoke() = 0;

  /// Invokes `calls` times and answers what each took.
  virtual llvm::Expected<Timing> time(uint64_t calls);

  /// The outputs of the last invoke, in the signature's order.
  virtual llvm::ArrayRef<Tensor> outputs() const = 0;

  /// Invokes once and answers the time of each dispatch, in order of first use. Fails where calls cannot be watched.
  virtual llvm::Expected<std::vector<DispatchTime>> profile() = 0;
};

/// How an artifact or a model is opened.
struct OpenOptions {
  uint64_t threads = 1;
};

/// Compiles the shared module for this machine, in memory. `module` must outlive the answer.
llvm::Expected<std::unique_ptr<Executable>> openJit(const targets::SharedModule &module, const OpenOptions &options);

/// Opens an artifact by its loader. Weights that it has not inside are taken from NAME.weights beside it.
llvm::Expected<std::unique_ptr<Executable>> openSharedObject(llvm::StringRef path, const OpenOptions &options);
llvm::Expected<std::unique_ptr<Executable>> openWebFolder(llvm::StringRef path);
llvm::Expected<std::unique_ptr<Executable>> openBundle(llvm::StringRef path, const OpenOptions &options);

/// Opens what the command line names: a bundle or a .so by its loader, a web-wasm folder through node, anything else as
/// a model, which is compiled. Told by content, not by name.
llvm::Expected<std::unique_ptr<Executable>> open(const Options &options, const Log &log);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_EXECUTABLE_H
