#include "targets/OutputFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace vmpack::targets {

static Error failed(const Twine &what, StringRef file, std::error_code code) {
  return createStringError(code, what + " '" + file + "': " + code.message());
}

static std::string join(StringRef directory, const Twine &name) {
  SmallString<256> joined(directory);
  path::append(joined, name);
  return std::string(joined);
}

/// Writes and closes; every byte is on its way to the disk or there is an error.
static Error writeAll(StringRef file, ArrayRef<char> bytes, int descriptor) {
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true, /*unbuffered=*/true);
  stream.write(bytes.data(), bytes.size());
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  return code ? failed("cannot write", file, code) : Error::success();
}

/// A new directory with a unique name in the nearest ancestor of `finalPath` that exists: of the same file system, so
/// that renames into place are atomic.
static Expected<std::string> createSibling(StringRef finalPath) {
  StringRef ancestor = path::parent_path(finalPath);
  while (!ancestor.empty() && !fs::exists(ancestor))
    ancestor = path::parent_path(ancestor);
  if (ancestor.empty())
    ancestor = path::is_absolute(finalPath) ? "/" : ".";
  if (!fs::is_directory(ancestor))
    return createStringError("cannot create '" + finalPath + "': '" + ancestor + "' is not a directory");
  for (unsigned attempt = 0; attempt < 128; ++attempt) {
    SmallString<256> candidate;
    fs::createUniquePath(join(ancestor, ".vmpack-%%%%%%%%"), candidate, /*MakeAbsolute=*/false);
    std::error_code code = fs::create_directory(candidate, /*IgnoreExisting=*/false);
    if (!code)
      return std::string(candidate);
    if (code != std::errc::file_exists)
      return failed("cannot write to", ancestor, code);
  }
  return createStringError("cannot find a free name in '" + ancestor + "'");
}

Expected<OutputDirectory> OutputDirectory::create(StringRef requested) {
  StringRef trimmed = requested;
  while (trimmed.size() > 1 && trimmed.ends_with("/"))
    trimmed = trimmed.drop_back();
  if (trimmed.empty())
    return createStringError("the output directory has no name");
  if (fs::exists(trimmed) && !fs::is_directory(trimmed))
    return createStringError("cannot create '" + trimmed + "': a file of that name exists");
  OutputDirectory directory;
  directory.finalPath = trimmed.str();
  Expected<std::string> sibling = createSibling(trimmed);
  if (!sibling)
    return sibling.takeError();
  directory.temporaryPath = *sibling;
  directory.scratchPath = join(*sibling, "scratch");
  for (const std::string &made : {directory.scratchPath, join(*sibling, "files")})
    if (std::error_code code = fs::create_directory(made))
      return failed("cannot create", made, code);
  if (fs::exists(trimmed) && !fs::can_write(trimmed))
    return createStringError("cannot write to '" + trimmed + "': permission denied");
  return directory;
}

OutputDirectory::OutputDirectory(OutputDirectory &&other) noexcept
    : finalPath(std::move(other.finalPath)), temporaryPath(std::exchange(other.temporaryPath, {})),
      scratchPath(std::move(other.scratchPath)), files(std::move(other.files)) {}

OutputDirectory &OutputDirectory::operator=(OutputDirectory &&other) noexcept {
  std::swap(finalPath, other.finalPath);
  std::swap(temporaryPath, other.temporaryPath);
  std::swap(scratchPath, other.scratchPath);
  std::swap(files, other.files);
  return *this;
}

OutputDirectory::~OutputDirectory() {
  if (!temporaryPath.empty())
    fs::remove_directories(temporaryPath);
}

StringRef OutputDirectory::scratch() const { return scratchPath; }

Error OutputDirectory::write(StringRef relativePath, ArrayRef<char> bytes) {
  if (any_of(files, [&](const Entry &entry) { return entry.path == relativePath; }))
    return createStringError("'" + relativePath + "' is written twice to '" + finalPath + "'");
  std::string file = join(temporaryPath, "files/" + relativePath);
  if (std::error_code code = fs::create_directories(path::parent_path(file)))
    return failed("cannot create the folder of", join(finalPath, relativePath), code);
  int descriptor;
  if (std::error_code code = fs::openFileForWrite(file, descriptor, fs::CD_CreateNew))
    return failed("cannot write", join(finalPath, relativePath), code);
  if (Error error = writeAll(join(finalPath, relativePath), bytes, descriptor))
    return error;
  files.push_back({relativePath.str(), bytes.size()});
  return Error::success();
}

Error OutputDirectory::write(StringRef relativePath, StringRef text) {
  return write(relativePath, ArrayRef<char>(text.data(), text.size()));
}

namespace {

/// Renames that are undone, last first, unless all of them succeed.
class Renames {
public:
  ~Renames() {
    for (auto &[from, to] : reverse(done))
      fs::rename(to, from);
  }
  std::error_code move(std::string from, std::string to) {
    std::error_code code = fs::rename(from, to);
    if (!code)
      done.emplace_back(std::move(from), std::move(to));
    return code;
  }
  void keep() { done.clear(); }

private:
  std::vector<std::pair<std::string, std::string>> done;
};

} // namespace

Error OutputDirectory::commit() {
  if (std::error_code code = fs::create_directories(finalPath))
    return failed("cannot create", finalPath, code);
  Renames renames;
  for (auto [index, entry] : enumerate(files)) {
    std::string place = join(finalPath, entry.path);
    if (std::error_code code = fs::create_directories(path::parent_path(place)))
      return failed("cannot create the folder of", place, code);
    if (fs::exists(place))
      if (std::error_code code = renames.move(place, join(scratchPath, "replaced-" + Twine(index))))
        return failed("cannot replace", place, code);
    if (std::error_code code = renames.move(join(temporaryPath, "files/" + entry.path), place))
      return failed("cannot create", place, code);
  }
  renames.keep();
  fs::remove_directories(temporaryPath);
  temporaryPath.clear();
  return Error::success();
}

Error writeFileAtomically(StringRef file, ArrayRef<char> bytes) {
  if (file == "-") {
    outs().write(bytes.data(), bytes.size());
    outs().flush();
    std::error_code code = outs().error();
    outs().clear_error();
    return code ? failed("cannot write", "standard output", code) : Error::success();
  }
  if (fs::is_directory(file))
    return createStringError("cannot write '" + file + "': it is a directory");
  SmallString<256> temporary;
  int descriptor;
  if (std::error_code code = fs::createUniqueFile(file + ".vmpack-%%%%%%%%", descriptor, temporary))
    return failed("cannot write", file, code);
  Error error = writeAll(file, bytes, descriptor);
  if (!error)
    if (std::error_code code = fs::rename(temporary, file))
      error = failed("cannot write", file, code);
  if (error)
    fs::remove(temporary);
  return error;
}

} // namespace vmpack::targets
