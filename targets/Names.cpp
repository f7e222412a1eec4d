#include "targets/Names.h"

#include "vmpk/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace vmpack::targets {

/// Keywords of C (to C23), C++ (to C++20) and JavaScript, and what headers commonly define.
static bool isReserved(StringRef name) {
  static const StringSet<> words = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
      "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
      "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
      "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
      "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
      // JavaScript
      "arguments", "await", "debugger", "eval", "extends", "finally", "function", "implements", "import", "in",
      "instanceof", "interface", "let", "null", "package", "super", "var", "with", "yield",
      // macros of common headers
      "linux", "unix", "errno", "EOF", "NULL", "I", "major", "minor", "near", "far", "min", "max", "stdin", "stdout",
      "stderr", "assert"};
  return words.contains(name);
}

std::string cIdentifier(StringRef name) {
  std::string identifier;
  for (char each : name) {
    char mapped = isAlnum(each) ? each : '_';
    // Two underscores in a row are the implementation's in C++.
    if (mapped != '_' || identifier.empty() || identifier.back() != '_')
      identifier += mapped;
  }
  StringRef core = StringRef(identifier).trim('_');
  if (core.empty())
    return "unnamed";
  if (isDigit(core.front()))
    return ("n" + core).str();
  return isReserved(core) ? (core + "_").str() : core.str();
}

std::string NameScope::unique(StringRef name) {
  std::string base = cIdentifier(name), candidate = base;
  for (unsigned number = 2; !taken.insert(candidate).second; ++number)
    candidate = (Twine(base) + "_" + Twine(number)).str();
  return candidate;
}

namespace {
struct Dtype {
  uint32_t value;
  StringLiteral name, cType;
  uint64_t size;
};
} // namespace

static const Dtype &find(uint32_t dtype) {
  static const Dtype table[] = {{VMPK_DTYPE_F32, "f32", "float", 4},    {VMPK_DTYPE_F64, "f64", "double", 8},
                                {VMPK_DTYPE_F16, "f16", "uint16_t", 2}, {VMPK_DTYPE_BF16, "bf16", "uint16_t", 2},
                                {VMPK_DTYPE_I8, "i8", "int8_t", 1},     {VMPK_DTYPE_I16, "i16", "int16_t", 2},
                                {VMPK_DTYPE_I32, "i32", "int32_t", 4},  {VMPK_DTYPE_I64, "i64", "int64_t", 8},
                                {VMPK_DTYPE_U8, "u8", "uint8_t", 1},    {VMPK_DTYPE_U16, "u16", "uint16_t", 2},
                                {VMPK_DTYPE_U32, "u32", "uint32_t", 4}, {VMPK_DTYPE_U64, "u64", "uint64_t", 8},
                                {VMPK_DTYPE_BOOL, "bool", "uint8_t", 1}};
  static const Dtype invalid = {VMPK_DTYPE_INVALID, "invalid", "uint8_t", 1};
  for (const Dtype &each : table)
    if (each.value == dtype)
      return each;
  return invalid;
}

StringRef dtypeCType(uint32_t dtype) { return find(dtype).cType; }
StringRef dtypeName(uint32_t dtype) { return find(dtype).name; }
uint64_t dtypeSize(uint32_t dtype) { return find(dtype).size; }

} // namespace vmpack::targets
