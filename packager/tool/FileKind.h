//===- FileKind.h - what a path on the command line is, by its content ----------------------------------===//
#ifndef VMPACK_TOOL_FILEKIND_H
#define VMPACK_TOOL_FILEKIND_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace vmpack::tool {

/// Model is whatever no artifact looks like: the frontend says what is wrong with it.
enum class FileKind { Model, Bundle, SharedObject, Folder, OtherArtifact };

/// Looks at the first bytes. A file that cannot be read is an error.
llvm::Expected<FileKind> identify(llvm::StringRef path);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_FILEKIND_H
