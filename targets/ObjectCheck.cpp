#include "targets/ObjectCheck.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Object/Wasm.h"

using namespace llvm;
using namespace llvm::object;

namespace vmpack::targets {

/// Symbols that every linker of the format makes itself, or that stand for nothing: Windows objects with floating point
/// refer to _fltused, which every program there has.
static bool isLinkersOwn(StringRef name) {
  static const StringSet<> names = {"_GLOBAL_OFFSET_TABLE_",
                                    "__stack_pointer",
                                    "__indirect_function_table",
                                    "__linear_memory",
                                    "__memory_base",
                                    "__table_base",
                                    "_fltused",
                                    "__fltused"};
  return names.contains(name);
}

static StringRef cName(const ObjectFile &object, StringRef name) {
  bool underscore = object.isMachO() || (object.isCOFF() && object.getArch() == Triple::x86);
  if (underscore)
    name.consume_front("_");
  return name;
}

/// COFF shares floating-point constants among objects by their names.
static bool isSharedConstant(StringRef name) {
  return name.starts_with("__real@") || name.starts_with("__xmm@") || name.starts_with("__ymm@") ||
         name.starts_with("__zmm@");
}

static Expected<std::unique_ptr<ObjectFile>> open(ArrayRef<char> bytes) {
  return ObjectFile::createObjectFile(MemoryBufferRef(StringRef(bytes.data(), bytes.size()), "object"));
}

/// The function of `section` whose code holds `address`.
static std::string functionAt(const ObjectFile &object, const SectionRef &section, uint64_t address) {
  std::string best;
  uint64_t bestAddress = 0;
  for (const SymbolRef &symbol : object.symbols()) {
    Expected<SymbolRef::Type> type = symbol.getType();
    Expected<section_iterator> home = symbol.getSection();
    Expected<uint64_t> start = symbol.getAddress();
    Expected<StringRef> name = symbol.getName();
    bool usable = type && home && start && name && *type == SymbolRef::ST_Function && *home != object.section_end() &&
                  **home == section;
    if (usable && *start <= address && (best.empty() || *start >= bestAddress)) {
      best = cName(object, *name).str();
      bestAddress = *start;
    }
    consumeError(type.takeError());
    consumeError(home.takeError());
    consumeError(start.takeError());
    consumeError(name.takeError());
  }
  return best;
}

static void addUsers(const ObjectFile &object, MutableArrayRef<UndefinedSymbol> undefined) {
  for (const SectionRef &section : object.sections()) {
    SectionRef code = section;
    if (Expected<section_iterator> relocated = section.getRelocatedSection()) {
      if (*relocated != object.section_end())
        code = **relocated;
    } else {
      consumeError(relocated.takeError());
    }
    for (const RelocationRef &relocation : section.relocations()) {
      symbol_iterator symbol = relocation.getSymbol();
      if (symbol == object.symbol_end())
        continue;
      Expected<StringRef> name = symbol->getName();
      if (!name) {
        consumeError(name.takeError());
        continue;
      }
      auto *found = find_if(undefined, [&](const UndefinedSymbol &each) { return each.name == cName(object, *name); });
      if (found == undefined.end())
        continue;
      std::string user = functionAt(object, code, code.getAddress() + relocation.getOffset());
      if (!user.empty() && !is_contained(found->users, user))
        found->users.push_back(user);
    }
  }
}

Expected<std::vector<UndefinedSymbol>> undefinedSymbols(ArrayRef<char> bytes) {
  Expected<std::unique_ptr<ObjectFile>> object = open(bytes);
  if (!object)
    return object.takeError();
  std::vector<UndefinedSymbol> undefined;
  for (const SymbolRef &symbol : (*object)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & SymbolRef::SF_Undefined) || (*flags & SymbolRef::SF_FormatSpecific))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty() && !isLinkersOwn(*name))
      undefined.push_back({cName(**object, *name).str(), {}});
  }
  if (!undefined.empty())
    addUsers(**object, undefined);
  return undefined;
}

Expected<std::vector<std::string>> exportedSymbols(ArrayRef<char> bytes) {
  Expected<std::unique_ptr<ObjectFile>> object = open(bytes);
  if (!object)
    return object.takeError();
  std::vector<std::string> exported;
  for (const SymbolRef &symbol : (*object)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    uint32_t hidden = SymbolRef::SF_Undefined | SymbolRef::SF_FormatSpecific;
    if (!(*flags & SymbolRef::SF_Global) || (*flags & hidden))
      continue;
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!isSharedConstant(*name))
      exported.push_back(cName(**object, *name).str());
  }
  return exported;
}

} // namespace vmpack::targets
