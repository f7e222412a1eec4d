//===- Options.h - argv to a checked value: station 1 ---------------------------------------------------===//
//
// One row of the table in Options.cpp is one option: its flag, the field of the same name here, the commands that take
// it and its help. Adding an option touches that table and one field.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TOOL_OPTIONS_H
#define VMPACK_TOOL_OPTIONS_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace vmpack::tool {

enum class Command { Pack, Run, Inspect, Bench, ListTargets };

/// Where the pipeline stops, in its order; Artifacts is the whole way.
enum class Emit { Imported, Lowered, Llvm, Bitcode, Artifacts };

/// What the user typed, checked as far as it can be without opening a file.
struct Options {
  Command command = Command::Pack;
  std::vector<std::string> models; ///< models to pack; for run, inspect and bench one model or artifact
  bool verbose = false;
  bool winograd = true;

  // Pack.
  std::vector<std::string> targets;
  std::string output;
  Emit emit = Emit::Artifacts;
  bool externalWeights = false;
  bool runtimeless = false;
  std::string name, triple, cpu;
  uint64_t maxSize = 0; ///< bytes; 0: no limit
  /// A model's symbolic dims: inclusive bounds, equal when the dim is fixed.
  std::map<std::string, std::pair<int64_t, int64_t>> dims;

  // Run and bench.
  std::vector<std::pair<std::string, std::string>> inputs; ///< tensor name, file
  std::string outputDir;
  uint64_t seed = 1;
  uint64_t threads = 1;
  uint64_t iterations = 50;
  bool json = false;
  bool profile = false;
};

/// What parse answers when there is nothing left to do (--help, --version: code 0) or the command line is wrong (1).
/// The text has been printed.
struct Exit {
  int code;
};

/// Parses argv into `options`. Prints help, version and usage errors itself and then answers Exit.
[[nodiscard]] std::variant<Options, Exit> parse(int argc, const char *const *argv);

/// Parses `NAME=SIZE` or `NAME=MINIMUM..MAXIMUM` (names may hold '=').
llvm::Expected<std::pair<std::string, std::pair<int64_t, int64_t>>> parseDim(llvm::StringRef text);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_OPTIONS_H
