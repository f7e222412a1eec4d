//===- KernelLibrary.h - the kernels' bitcode, by level -------------------------------------------------===//
//
// The kernel library is compiled to bitcode when vmpack is built, one module an ISA level; this is how codegen gets at
// it. What LLVM's legalization calls for (memcpy, __divdi3 …) is in a level's own support module.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_KERNELLIBRARY_H
#define VMPACK_TARGETS_KERNELLIBRARY_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace vmpack::targets {

/// The attribute by which functions of the library are known once they are linked in.
inline constexpr llvm::StringLiteral kernelAttribute = "vmpk-kernel";

/// The kernels of `level`, made to look as compiled for `like`'s triple and data layout, with no CPU attributes of
/// their own. Functions are read lazily. An unknown level is an error that lists those there are.
llvm::Expected<std::unique_ptr<llvm::Module>> loadKernels(llvm::StringRef level, const llvm::Module &like);

/// Likewise the support functions of `level`; NULL when it has none.
llvm::Expected<std::unique_ptr<llvm::Module>> loadSupport(llvm::StringRef level, const llvm::Module &like);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_KERNELLIBRARY_H
