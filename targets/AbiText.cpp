#include "targets/AbiText.h"
#include "targets/Embedded.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace vmpack::targets {

static void replace(std::string &text, StringRef from, StringRef to) {
  size_t position = text.find(from.str());
  if (position != std::string::npos)
    text.replace(position, from.size(), to.str());
}

std::string abiText() {
  std::string abi = embeddedAbiHeader().str();
  // Accessors are for generated code only.
  StringRef begin = "/* ---- The module's side", end = "#endif /* VMPK_MODULE_SIDE */\n";
  size_t from = abi.find(begin.str()), to = abi.find(end.str());
  if (from != std::string::npos && to != std::string::npos)
    abi.erase(from, to + end.size() - from);
  replace(abi, "#include \"vmpk/status.h\"\n", "");
  // Unnamed unions came with C11: this keeps C99 compilers quiet about them.
  if (abi.find("__extension__ union") == std::string::npos)
    replace(abi, "  union {", "  __extension__ union {");
  return embeddedStatusHeader().str() + "\n" + abi;
}

} // namespace vmpack::targets
