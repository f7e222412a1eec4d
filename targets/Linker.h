//===- Linker.h - lld, in this process ------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_LINKER_H
#define VMPACK_TARGETS_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace vmpack::targets {

enum class LinkerFlavor { Elf, Wasm };

/// Links one object. `scratch` is a directory for the linker's files, which are gone afterwards; `stem` names them and
/// must be new there. `arguments` come between the flavour's name and `object -o output`. Calls from several threads
/// run one after another. Errors hold the linker's words.
llvm::Expected<std::vector<char>> link(LinkerFlavor flavor, llvm::ArrayRef<std::string> arguments,
                                       llvm::ArrayRef<char> object, llvm::StringRef scratch, llvm::StringRef stem);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_LINKER_H
