//===- Inspect.h - what is in an artifact ---------------------------------------------------------------===//
//
//   bundle, .so, .o, .wasm, .a (thin or fat), or a folder of them  ──►  parts, each with its sections and its table
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_INSPECT_H
#define VMPACK_TARGETS_INSPECT_H

#include "targets/Table.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace vmpack::targets {

/// A section of a file, or of a bundle.
struct SectionSize {
  std::string name;
  uint64_t size; ///< bytes in the file
};

/// One machine's code in an artifact.
struct InspectedPart {
  std::string name;          ///< where it is: a file's name, an archive's member, a bundle's ABI
  std::string format;        ///< e.g. "elf64-x86-64", "Mach-O arm64", "WASM"
  uint64_t size = 0;         ///< bytes it takes in the artifact
  uint64_t unpackedSize = 0; ///< of the code file itself; differs in bundles
  std::vector<SectionSize> sections;
  std::optional<Manifest> manifest; ///< none in runtimeless artifacts
};

/// An artifact.
struct Inspection {
  std::string kind; ///< "bundle", "archive", "fat archive", "shared object", "object", "wasm module", "folder"
  uint64_t size = 0;
  std::vector<InspectedPart> parts;
  std::vector<SectionSize> sections; ///< what is shared by the parts: a bundle's weights
};

/// Reads the artifact at `path`, a file or a folder, as untrusted input. A file of no known format is an error that
/// says what its first bytes are.
llvm::Expected<Inspection> inspect(llvm::StringRef path);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_INSPECT_H
