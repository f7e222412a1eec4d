//===- Compiler.h - stations 2 to 4: a model's bytes to the shared module -------------------------------===//
//
//   Frontend ──► Lowering ──► Translation      MLIR lives and ends inside this class
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TOOL_COMPILER_H
#define VMPACK_TOOL_COMPILER_H

#include "packager/tool/Errors.h"
#include "packager/tool/Options.h"
#include "targets/SharedModule.h"

#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>

namespace vmpack::tool {

using Log = std::function<void(const llvm::Twine &)>;

/// Compiles models, one at a time. Making one is what costs (dialects are loaded), so reuse it.
class Compiler {
public:
  struct Input {
    std::string path;
    std::string name; ///< of the module
    std::map<std::string, std::pair<int64_t, int64_t>> dims;
    bool winograd = true;
  };

  /// `log` is told of each station; `verbose` also lets the lowering name its passes on standard error.
  /// `threads` false keeps MLIR in the calling thread, which a program that forks needs.
  Compiler(Log log, bool verbose, bool threads = true);
  ~Compiler();

  /// Imports, lowers and translates. A bad model is a plain error with every diagnostic of its locations; a failure
  /// behind the frontend is an InternalError.
  llvm::Expected<targets::SharedModule> compile(const Input &input);

  /// The module's text as it stands at `station` (the bitcode's bytes for Emit::Bitcode).
  llvm::Expected<std::string> emit(const Input &input, Emit station);

private:
  struct Session;
  std::unique_ptr<Session> session;
};

/// The module's name for the model at `path`: the file's stem as a C identifier.
std::string moduleName(llvm::StringRef path);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_COMPILER_H
