//===- FileKind.cpp - what a path on the command line is, by its content --------------------------------===//
#include "packager/tool/FileKind.h"

#include "packager/tool/Errors.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace vmpack::tool {

Expected<FileKind> identify(StringRef path) {
  auto failed = [&](std::error_code code) { return userError("cannot read '" + path + "': " + code.message()); };
  if (sys::fs::is_directory(path))
    return FileKind::Folder;
  auto file = sys::fs::openNativeFileForRead(path);
  if (!file)
    return failed(errorToErrorCode(file.takeError()));
  char bytes[64] = {};
  auto size = sys::fs::readNativeFile(*file, MutableArrayRef(bytes));
  sys::fs::closeFile(*file);
  if (!size)
    return failed(errorToErrorCode(size.takeError()));

  StringRef head(bytes, *size);
  // A flatbuffer carries its schema's identifier behind the root's offset.
  if (head.substr(4, 4) == "VMPB")
    return FileKind::Bundle;
  switch (identify_magic(head)) {
  case file_magic::elf_shared_object:
    return FileKind::SharedObject;
  case file_magic::archive:
  case file_magic::elf:
  case file_magic::elf_relocatable:
  case file_magic::macho_object:
  case file_magic::macho_universal_binary:
  case file_magic::coff_object:
  case file_magic::wasm_object:
    return FileKind::OtherArtifact;
  default:
    return FileKind::Model;
  }
}

} // namespace vmpack::tool
