//===- Names.h - identifiers and C types for names that come from models --------------------------------===//
#ifndef VMPACK_TARGETS_NAMES_H
#define VMPACK_TARGETS_NAMES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace vmpack::targets {

/// `name` as a C and C++ identifier: other characters become '_', a leading digit gets a '_', and keywords of either
/// language a trailing '_'. Never empty.
std::string cIdentifier(llvm::StringRef name);

/// Identifiers of one scope: each answer is valid in C, C++ and JavaScript and new, by a number at its end if need be.
class NameScope {
public:
  /// Takes a name that generated code uses itself.
  void reserve(llvm::StringRef name) { taken.insert(name); }
  std::string unique(llvm::StringRef name);

private:
  llvm::StringSet<> taken;
};

/// The C type of a VMPK_DTYPE_* value ("float"; half types are "uint16_t", bool is "uint8_t").
llvm::StringRef dtypeCType(uint32_t dtype);
/// Its name ("f32").
llvm::StringRef dtypeName(uint32_t dtype);
/// Its bytes.
uint64_t dtypeSize(uint32_t dtype);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_NAMES_H
