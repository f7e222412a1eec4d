#include "tests/targets/Scratch.h"
#include "tests/targets/Fixture.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iomanip>
#include <iterator>
#include <sstream>
#include <stdlib.h>

namespace fs = std::filesystem;
using namespace vmpack::targets;

namespace vmpack::tests {

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "vmpack-test-XXXXXX").string();
  root = mkdtemp(pattern.data());
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(root, ignored);
}

static llvm::Error tryBuild(const std::string &target, const SharedModule &module, const BuildOptions &options,
                            const std::string &directory) {
  llvm::Expected<const Target *> found = findTarget(target);
  if (!found)
    return found.takeError();
  llvm::Expected<OutputDirectory> out = OutputDirectory::create(directory);
  if (!out)
    return out.takeError();
  if (llvm::Error error = (*found)->build(module, options, *out))
    return error;
  return out->commit();
}

void build(const std::string &target, const SharedModule &module, const BuildOptions &options,
           const std::string &directory) {
  if (llvm::Error error = tryBuild(target, module, options, directory))
    FAIL() << llvm::toString(std::move(error));
}

std::string buildError(const std::string &target, const SharedModule &module, const BuildOptions &options,
                       const std::string &directory) {
  llvm::Error error = tryBuild(target, module, options, directory);
  EXPECT_TRUE(static_cast<bool>(error)) << target << " was built";
  EXPECT_TRUE(filesOf(directory).empty());
  return llvm::toString(std::move(error));
}

std::vector<char> readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.good()) << path;
  return std::vector<char>(std::istreambuf_iterator<char>(stream), {});
}

void writeFile(const std::string &path, const std::string &text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  EXPECT_TRUE(stream.good()) << path;
}

std::vector<std::string> filesOf(const std::string &directory) {
  std::vector<std::string> files;
  if (!fs::exists(directory))
    return files;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      files.push_back(fs::relative(entry.path(), directory).string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string run(const std::string &command) {
  std::string output;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "cannot run " << command;
    return output;
  }
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof(buffer), pipe))
    output.append(buffer, count);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
  return output;
}

std::vector<float> runProgram(const std::string &runner, const std::string &arguments, size_t rows) {
  Scratch scratch;
  std::vector<float> input = fixtureInput(rows);
  writeFile(scratch.path("in"),
            std::string(reinterpret_cast<const char *>(input.data()), input.size() * sizeof(float)));
  run(runner + " " + arguments + " < " + scratch.path("in") + " 2>&1 > " + scratch.path("out"));
  std::vector<char> bytes = readFile(scratch.path("out"));
  std::vector<float> output(bytes.size() / sizeof(float));
  std::memcpy(output.data(), bytes.data(), output.size() * sizeof(float));
  return output;
}

std::string printFloats(const std::vector<float> &values) {
  std::ostringstream stream;
  stream << std::setprecision(9);
  for (float value : values)
    stream << value << ' ';
  return stream.str();
}

std::vector<float> parseFloats(const std::string &text) {
  std::istringstream stream(text);
  return std::vector<float>(std::istream_iterator<float>(stream), {});
}

} // namespace vmpack::tests
