//===- Codegen.h - the shared module to one object file -------------------------------------------------===//
//
//   bitcode ─► set triple, layout ─► link kernels ─► stamp features ─► O3 ─► add table, weights ─► object
//                                                                                 ▲                  │
//                                              link support functions ◄── undefined symbols? ◄───────┘
//
// Every last mile goes through here. A finished object calls nothing outside of itself: what LLVM's legalization asks
// for (memcpy, a 64-bit division on a 32-bit CPU) is linked in from the kernel library, and anything else is an error.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_CODEGEN_H
#define VMPACK_TARGETS_CODEGEN_H

#include "targets/SharedModule.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace vmpack::targets {

/// One machine that code is made for: a row of a target's table of variants.
struct Variant {
  llvm::StringLiteral name;     ///< as in file names and messages, e.g. "arm64-v8a"
  llvm::StringLiteral triple;   ///< e.g. "aarch64-linux-android23"
  llvm::StringLiteral cpu;      ///< LLVM's name, or "" for the triple's baseline
  llvm::StringLiteral features; ///< LLVM's "+a,+b", added to the CPU's
  llvm::StringLiteral level;    ///< of the kernel library, see runtime/kernels
};

/// Where the weights of a finished object are.
enum class WeightsPlacement {
  Embedded, ///< constant data of the object
  Absent,   ///< not in it: the host supplies them
  InMemory  ///< at SharedModule::weights.data() of this process (JIT)
};

/// What to make of the shared module.
struct CodegenRequest {
  std::string name;   ///< of the variant, for messages
  std::string triple; ///< the machine, as in Variant
  std::string cpu;
  std::string features;
  std::string level;
  WeightsPlacement weights = WeightsPlacement::Embedded;
  std::string querySymbol = "vmpk_query"; ///< what the query is exported as
  bool runtimeless = false;               ///< export NAME_run functions (see Runtimeless.h) instead of the query
  bool positionIndependentData = false;   ///< wasm side modules: addresses relative to __memory_base
  std::string section;                    ///< prefix for progress messages; unused when empty

  CodegenRequest() = default;
  explicit CodegenRequest(const Variant &variant)
      : name(variant.name), triple(variant.triple), cpu(variant.cpu), features(variant.features), level(variant.level) {
  }
};

/// A relocatable object file.
struct ObjectCode {
  std::vector<char> bytes;
  uint64_t stackSize = 0; ///< bytes, as patched into the module table; 0 when there is no bound
};

/// Compiles `module` for one machine. Deterministic, may run in several threads at once. Errors name the variant, and
/// for a symbol that nothing provides, the functions that refer to it.
llvm::Expected<ObjectCode> compile(const SharedModule &module, const CodegenRequest &request);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_CODEGEN_H
