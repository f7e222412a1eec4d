//===- ObjectCheck.h - what a finished object still asks for --------------------------------------------===//
#ifndef VMPACK_TARGETS_OBJECTCHECK_H
#define VMPACK_TARGETS_OBJECTCHECK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace vmpack::targets {

/// A symbol that an object refers to and does not define. Names are C's: without Mach-O's underscore.
struct UndefinedSymbol {
  std::string name;
  std::vector<std::string> users; ///< functions that refer to it, when the format says
};

/// The undefined symbols of an object file, in order of appearance, but for those that linkers define themselves
/// (_GLOBAL_OFFSET_TABLE_, __stack_pointer and their like).
llvm::Expected<std::vector<UndefinedSymbol>> undefinedSymbols(llvm::ArrayRef<char> object);

/// The defined symbols that other objects can see. Names are C's.
llvm::Expected<std::vector<std::string>> exportedSymbols(llvm::ArrayRef<char> object);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_OBJECTCHECK_H
