//===- Embedded.h - texts of the source tree that end up in artifacts -----------------------------------===//
#ifndef VMPACK_TARGETS_EMBEDDED_H
#define VMPACK_TARGETS_EMBEDDED_H

#include "llvm/ADT/StringRef.h"

namespace vmpack::targets {

llvm::StringRef embeddedAbiHeader();    ///< runtime/include/vmpk/abi.h
llvm::StringRef embeddedStatusHeader(); ///< runtime/include/vmpk/status.h
llvm::StringRef embeddedLoader();       ///< runtime/js/vmpk.mjs

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_EMBEDDED_H
