//===- OutputFile.h - the only writer of files that users see -------------------------------------------===//
//
//   create(out/ios-static) ── write(...) write(...) ── commit()      all files appear, or (on any error) none
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_OUTPUTFILE_H
#define VMPACK_TARGETS_OUTPUTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace vmpack::targets {

/// A directory of outputs that appears as a whole. Files are written to a sibling with a temporary name; commit()
/// puts them in place by rename, and the destructor removes what was not committed.
class OutputDirectory {
public:
  struct Entry {
    std::string path; ///< relative to the directory, '/'-separated
    uint64_t size;
  };

  /// Prepares `path` (created with its parents on commit). Fails early when the place cannot be written.
  static llvm::Expected<OutputDirectory> create(llvm::StringRef path);
  OutputDirectory(OutputDirectory &&) noexcept;
  OutputDirectory &operator=(OutputDirectory &&) noexcept;
  ~OutputDirectory();

  /// Writes one file; `relativePath` may have folders. A full disk or a second write of the same path is an error.
  llvm::Error write(llvm::StringRef relativePath, llvm::ArrayRef<char> bytes);
  llvm::Error write(llvm::StringRef relativePath, llvm::StringRef text);

  /// The place where a tool that insists on a path (lld) may read and write meanwhile; inside the temporary sibling,
  /// and never committed.
  llvm::StringRef scratch() const;

  /// Replaces the files of the same names in the final directory; other files there stay.
  llvm::Error commit();

  llvm::StringRef path() const { return finalPath; }
  llvm::ArrayRef<Entry> entries() const { return files; }

private:
  OutputDirectory() = default;
  std::string finalPath, temporaryPath, scratchPath;
  std::vector<Entry> files;
};

/// Writes one file by temporary name and rename ("-" is standard output).
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::ArrayRef<char> bytes);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_OUTPUTFILE_H
