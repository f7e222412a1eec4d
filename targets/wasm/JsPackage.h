//===- JsPackage.h - the JavaScript face of a web-wasm folder -------------------------------------------------===//
#ifndef VMPACK_TARGETS_WASM_JSPACKAGE_H
#define VMPACK_TARGETS_WASM_JSPACKAGE_H

#include "targets/SharedModule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace vmpack::targets {

/// NAME.mjs: finds the model's files by import.meta.url, in the form that bundlers follow, and exports load().
std::string entryModule(const SharedModule &module, llvm::ArrayRef<llvm::StringRef> variants, bool externalWeights);

/// NAME.d.ts: load() and the model's signature as types.
std::string entryTypes(const SharedModule &module, llvm::ArrayRef<llvm::StringRef> variants);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_WASM_JSPACKAGE_H
