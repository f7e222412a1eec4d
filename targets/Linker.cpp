#include "targets/Linker.h"
#include "targets/OutputFile.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

using namespace llvm;

namespace vmpack::targets {

/// lld keeps its state in globals; a fatal error inside it unwinds only with crash recovery on.
static Error runLinker(ArrayRef<std::string> arguments) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  static bool reusable = true;
  if (!reusable)
    return createStringError("the linker crashed before and cannot run again");
  CrashRecoveryContext::Enable();
  SmallVector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::string output, errors;
  raw_string_ostream outputStream(output), errorStream(errors);
  lld::Result result =
      lld::lldMain(argv, outputStream, errorStream, {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}});
  reusable = result.canRunAgain;
  if (result.retCode == 0)
    return Error::success();
  return createStringError("the linker failed: " + StringRef(errors).trim());
}

/// lld writes through a mapping, and a disk that fills up meanwhile kills the process: so the room is tried before.
static Error tryRoom(StringRef file, uint64_t size) {
  Error error = writeFileAtomically(file, std::vector<char>(size));
  sys::fs::remove(file);
  return error;
}

Expected<std::vector<char>> link(LinkerFlavor flavor, ArrayRef<std::string> arguments, ArrayRef<char> object,
                                 StringRef scratch, StringRef stem) {
  std::string input = (scratch + "/" + stem + ".o").str(), output = (scratch + "/" + stem + ".linked").str();
  if (Error error = writeFileAtomically(input, object))
    return error;
  // Headers, symbol tables and the alignment of segments: some pages of 16 KiB.
  if (Error error = tryRoom(output, object.size() + 8 * 16384)) {
    sys::fs::remove(input);
    return error;
  }
  std::vector<std::string> command{flavor == LinkerFlavor::Elf ? "ld.lld" : "wasm-ld"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {input, "-o", output});
  Error error = runLinker(command);
  sys::fs::remove(input);
  if (error)
    return error;
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(output, false, false);
  sys::fs::remove(output);
  if (!linked)
    return createStringError(linked.getError(), "the linker wrote nothing: " + linked.getError().message());
  return std::vector<char>((*linked)->getBufferStart(), (*linked)->getBufferEnd());
}

} // namespace vmpack::targets
