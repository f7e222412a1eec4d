//===- Table.h - reading a module table back ------------------------------------------------------------===//
//
// What an artifact says of itself, as untrusted input: every offset is checked, nothing is assumed of the bytes.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_TABLE_H
#define VMPACK_TARGETS_TABLE_H

#include "targets/SharedModule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace vmpack::targets {

/// A module table's contents.
struct Manifest {
  std::string name;
  uint32_t abiVersion = 0;
  std::array<uint8_t, 32> digest{}, weightsDigest{};
  uint64_t weightsSize = 0;
  uint64_t stackSize = 0; ///< of the machine this table was made for; 0: not known
  std::vector<Function> functions;
  std::vector<Dispatch> dispatches;
};

/// Reads a table; `bytes` may go on behind it. Errors name the field that is wrong.
llvm::Expected<Manifest> readTable(llvm::ArrayRef<char> bytes);

/// The first valid table inside a file of any format, or none. A file that holds the magic but no valid table gives
/// readTable's error.
llvm::Expected<std::optional<Manifest>> findTable(llvm::ArrayRef<char> file);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_TABLE_H
