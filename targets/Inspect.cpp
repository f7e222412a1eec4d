#include "targets/Inspect.h"
#include "targets/shared/Bundle.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/MachOUniversal.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>

using namespace llvm;
using namespace llvm::object;

namespace vmpack::targets {

static ArrayRef<char> bytesOf(MemoryBufferRef buffer) {
  return ArrayRef<char>(buffer.getBufferStart(), buffer.getBufferSize());
}

/// Sections of an object file that take bytes in it.
static Expected<std::vector<SectionSize>> sectionsOf(const ObjectFile &object) {
  std::vector<SectionSize> sections;
  for (const SectionRef &section : object.sections()) {
    Expected<StringRef> name = section.getName();
    if (!name)
      return name.takeError();
    if (section.getSize() != 0 && !section.isBSS() && !section.isVirtual())
      sections.push_back({name->str(), section.getSize()});
  }
  return sections;
}

static Expected<InspectedPart> inspectObject(MemoryBufferRef buffer, StringRef name) {
  Expected<std::unique_ptr<ObjectFile>> object = ObjectFile::createObjectFile(buffer);
  if (!object)
    return object.takeError();
  InspectedPart part;
  part.name = name.str();
  part.format = (*object)->getFileFormatName().str();
  part.size = part.unpackedSize = buffer.getBufferSize();
  Expected<std::vector<SectionSize>> sections = sectionsOf(**object);
  if (!sections)
    return sections.takeError();
  part.sections = std::move(*sections);
  Expected<std::optional<Manifest>> manifest = findTable(bytesOf(buffer));
  if (!manifest)
    return manifest.takeError();
  part.manifest = std::move(*manifest);
  return part;
}

static Error inspectArchive(const object::Archive &archive, StringRef prefix, Inspection &result) {
  Error error = Error::success();
  for (const object::Archive::Child &child : archive.children(error)) {
    Expected<MemoryBufferRef> buffer = child.getMemoryBufferRef();
    if (!buffer)
      return joinErrors(std::move(error), buffer.takeError());
    Expected<InspectedPart> part = inspectObject(*buffer, (prefix + buffer->getBufferIdentifier()).str());
    if (!part)
      return joinErrors(std::move(error), part.takeError());
    result.parts.push_back(std::move(*part));
  }
  return error;
}

static Error inspectFat(MemoryBufferRef buffer, Inspection &result) {
  Expected<std::unique_ptr<MachOUniversalBinary>> fat = MachOUniversalBinary::create(buffer);
  if (!fat)
    return fat.takeError();
  for (const MachOUniversalBinary::ObjectForArch &slice : (*fat)->objects()) {
    Expected<std::unique_ptr<object::Archive>> archive = slice.getAsArchive();
    if (!archive)
      return archive.takeError();
    if (Error error = inspectArchive(**archive, slice.getArchFlagName() + "/", result))
      return error;
  }
  return Error::success();
}

static Error inspectPart(MemoryBufferRef buffer, Inspection &result) {
  Expected<InspectedPart> part = inspectObject(buffer, sys::path::filename(buffer.getBufferIdentifier()));
  if (!part)
    return part.takeError();
  result.parts.push_back(std::move(*part));
  return Error::success();
}

static Error inspectBundle(MemoryBufferRef buffer, Inspection &result) {
  Expected<BundleContents> bundle = readBundle(bytesOf(buffer));
  if (!bundle)
    return bundle.takeError();
  for (const BundleVariant &variant : bundle->variants) {
    std::string name = variant.level.empty() ? variant.abi : variant.abi + " (" + variant.level + ")";
    StringRef code(variant.code.data(), variant.code.size());
    Expected<InspectedPart> part = inspectObject(MemoryBufferRef(code, name), name);
    if (!part)
      return part.takeError();
    part->size = variant.packedSize;
    result.parts.push_back(std::move(*part));
  }
  if (bundle->weightsSize != 0)
    result.sections.push_back({"weights", bundle->weightsSize});
  return Error::success();
}

static Error inspectBytes(MemoryBufferRef buffer, Inspection &result) {
  if (isBundle(bytesOf(buffer))) {
    result.kind = "bundle";
    return inspectBundle(buffer, result);
  }
  switch (identify_magic(buffer.getBuffer())) {
  case file_magic::archive: {
    result.kind = "archive";
    Expected<std::unique_ptr<object::Archive>> archive = object::Archive::create(buffer);
    if (!archive)
      return archive.takeError();
    return inspectArchive(**archive, "", result);
  }
  case file_magic::macho_universal_binary:
    result.kind = "fat archive";
    return inspectFat(buffer, result);
  case file_magic::elf_shared_object:
    result.kind = "shared object";
    return inspectPart(buffer, result);
  case file_magic::wasm_object:
    result.kind = "wasm module";
    return inspectPart(buffer, result);
  case file_magic::elf_relocatable:
  case file_magic::macho_object:
  case file_magic::coff_object:
    result.kind = "object";
    return inspectPart(buffer, result);
  default:
    break;
  }
  StringRef start = buffer.getBuffer().take_front(8);
  return createStringError("this is no artifact of vmpack's: it begins with " +
                           (start.empty() ? "nothing" : toHex(start, /*LowerCase=*/true)));
}

static Error inspectFile(StringRef path, Inspection &result) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(path, false, false);
  if (!file)
    return createStringError(file.getError(), "cannot read '" + path + "': " + file.getError().message());
  result.size += (*file)->getBufferSize();
  if (Error error = inspectBytes(**file, result))
    return createStringError("'" + path + "': " + toString(std::move(error)));
  return Error::success();
}

/// The code files of a folder, in order of their names; other files are counted only.
static Error inspectFolder(StringRef path, Inspection &result) {
  std::error_code code;
  std::vector<std::string> files;
  for (sys::fs::recursive_directory_iterator each(path, code), end; each != end && !code; each.increment(code))
    if (sys::fs::is_regular_file(each->path()))
      files.push_back(each->path());
  if (code)
    return createStringError(code, "cannot read '" + path + "': " + code.message());
  llvm::sort(files);
  for (const std::string &file : files) {
    StringRef extension = sys::path::extension(file);
    if (is_contained({".wasm", ".so", ".a", ".o", ".vmpb"}, extension)) {
      if (Error error = inspectFile(file, result))
        return error;
      continue;
    }
    uint64_t size = 0;
    sys::fs::file_size(file, size);
    result.size += size;
    result.sections.push_back({sys::path::filename(file).str(), size});
  }
  if (result.parts.empty())
    return createStringError("'" + path + "' holds no artifact");
  result.kind = "folder";
  return Error::success();
}

Expected<Inspection> inspect(StringRef path) {
  Inspection result;
  Error error = sys::fs::is_directory(path) ? inspectFolder(path, result) : inspectFile(path, result);
  if (error)
    return error;
  return result;
}

} // namespace vmpack::targets
