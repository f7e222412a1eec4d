// Places and commands of a test.
#ifndef VMPACK_TESTS_TARGETS_SCRATCH_H
#define VMPACK_TESTS_TARGETS_SCRATCH_H

#include "targets/Target.h"

#include <string>
#include <vector>

namespace vmpack::tests {

/// A directory that is gone with the object.
class Scratch {
public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  std::string path(const std::string &relative = "") const { return root + (relative.empty() ? "" : "/" + relative); }

private:
  std::string root;
};

/// Builds and commits a target; fails the current test on errors.
void build(const std::string &target, const targets::SharedModule &module, const targets::BuildOptions &options,
           const std::string &directory);

/// The error of a build that must fail; no file may be left in `directory`.
std::string buildError(const std::string &target, const targets::SharedModule &module,
                       const targets::BuildOptions &options, const std::string &directory);

/// A file's bytes; fails the current test when it cannot be read.
std::vector<char> readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &text);

/// Every file below `directory`, relative and sorted.
std::vector<std::string> filesOf(const std::string &directory);

/// Runs a shell command and fails the current test when it does; gives its output.
std::string run(const std::string &command);

/// Runs `runner` (run_query, see run_query.c, with an emulator before it) with `arguments` on the fixture's input.
std::vector<float> runProgram(const std::string &runner, const std::string &arguments, size_t rows);

/// A vector of floats as space-separated numbers that read back exactly, and back.
std::string printFloats(const std::vector<float> &values);
std::vector<float> parseFloats(const std::string &text);

} // namespace vmpack::tests

#endif // VMPACK_TESTS_TARGETS_SCRATCH_H
