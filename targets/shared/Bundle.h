//===- Bundle.h - writing and reading NAME.vmpb (schemas/bundle.fbs) ------------------------------------------===//
#ifndef VMPACK_TARGETS_SHARED_BUNDLE_H
#define VMPACK_TARGETS_SHARED_BUNDLE_H

#include "targets/SharedModule.h"
#include "targets/Target.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace vmpack::targets {

/// A shared object of a bundle.
struct BundleVariant {
  std::string abi;   ///< "arm64-v8a"
  std::string level; ///< "" when the ABI's baseline will do
  std::vector<char> code;
  uint64_t packedSize = 0; ///< filled when read
};

/// What a bundle holds, unpacked.
struct BundleContents {
  std::string name;
  std::vector<BundleVariant> variants;
  uint64_t weightsSize = 0; ///< inside the bundle
};

/// The bundle's bytes: each variant compressed, the weights once for all of them (inside, or by name in
/// WeightsMode::External), SHA-256 of everything. The variants' code must have no weights of its own.
llvm::Expected<std::vector<char>> writeBundle(const SharedModule &module, llvm::ArrayRef<BundleVariant> variants,
                                              WeightsMode weights);

/// Whether the bytes begin as a bundle does.
bool isBundle(llvm::ArrayRef<char> bytes);

/// Reads a bundle as untrusted input and checks every SHA-256.
llvm::Expected<BundleContents> readBundle(llvm::ArrayRef<char> bytes);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_SHARED_BUNDLE_H
