//===- Header.h - the C header of a static artifact -----------------------------------------------------===//
//
// Self-contained C99 and C++17: the ABI's text is in it, behind the include guards of vmpk/abi.h, so that it goes
// together with the runtime's own headers or does without them.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_HEADER_H
#define VMPACK_TARGETS_HEADER_H

#include "targets/SharedModule.h"

#include <string>

namespace vmpack::targets {

/// What a header says beside the signatures.
struct HeaderOptions {
  bool externalWeights = false; ///< calls take a `weights` pointer
  uint64_t stackSize = 0;       ///< the most of all variants; 0: no bound is known
};

/// NAME.h of an artifact that exports `vmpk_NAME_query`: the query, sizes and shapes as macros, and typed calls
/// `vmpk_NAME_run(inputs…, outputs…, [dims…], [weights], arena)` for each function.
std::string staticHeader(const SharedModule &module, const HeaderOptions &options);

/// NAME.h of a runtimeless artifact: prototypes of `NAME_run` and the same macros; no ABI text.
std::string runtimelessHeader(const SharedModule &module, const HeaderOptions &options);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_HEADER_H
