//===- AbiText.h - the ABI headers as text for generated headers ----------------------------------------===//
#ifndef VMPACK_TARGETS_ABITEXT_H
#define VMPACK_TARGETS_ABITEXT_H

#include <string>

namespace vmpack::targets {

/// vmpk/status.h and vmpk/abi.h, each behind its include guard, without the module's side and clean under
/// -std=c99 -Wpedantic.
std::string abiText();

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_ABITEXT_H
