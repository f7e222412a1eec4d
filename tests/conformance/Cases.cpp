//===- Cases.cpp - the ONNX standard's test cases on disk -------------------------------------------------===//
#include "tests/conformance/Cases.h"

#include "vmpk/abi.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace llvm;

namespace vmpack::conformance {
namespace {

std::vector<std::string> listDirectory(StringRef path) {
  std::vector<std::string> names;
  std::error_code error;
  for (sys::fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error))
    names.push_back(sys::path::filename(it->path()).str());
  sort(names);
  return names;
}

/// DIR/PREFIX0.pb, DIR/PREFIX1.pb … as far as they exist.
std::vector<std::string> numberedFiles(StringRef directory, StringRef prefix) {
  std::vector<std::string> files;
  for (size_t i = 0;; ++i) {
    std::string path = (directory + "/" + prefix + Twine(i) + ".pb").str();
    if (!sys::fs::exists(path))
      return files;
    files.push_back(path);
  }
}

Case readCase(StringRef directory, StringRef name) {
  Case test{name.str(), (directory + "/model.onnx").str(), {}};
  for (const std::string &entry : listDirectory(directory)) {
    if (!StringRef(entry).starts_with("test_data_set_"))
      continue;
    std::string set = (directory + "/" + entry).str();
    test.dataSets.push_back({numberedFiles(set, "input_"), numberedFiles(set, "output_")});
  }
  return test;
}

template <typename T> double load(const tool::Tensor &tensor, size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double loadFloat(const tool::Tensor &tensor, size_t index) {
  if (tensor.dtype == VMPK_DTYPE_F32)
    return load<float>(tensor, index);
  if (tensor.dtype == VMPK_DTYPE_F64)
    return load<double>(tensor, index);
  uint16_t bits;
  std::memcpy(&bits, tensor.bytes.data() + index * 2, 2);
  const fltSemantics &semantics = tensor.dtype == VMPK_DTYPE_F16 ? APFloat::IEEEhalf() : APFloat::BFloat();
  return APFloat(semantics, APInt(16, bits)).convertToDouble();
}

double tolerance(uint32_t dtype) { return dtype == VMPK_DTYPE_F16 ? 1e-2 : dtype == VMPK_DTYPE_BF16 ? 4e-2 : 1e-4; }

bool isFloat(uint32_t dtype) {
  return dtype == VMPK_DTYPE_F32 || dtype == VMPK_DTYPE_F64 || dtype == VMPK_DTYPE_F16 || dtype == VMPK_DTYPE_BF16;
}

} // namespace

Expected<std::vector<Case>> findCases(StringRef data, StringRef suite, StringRef filter) {
  std::vector<Case> cases;
  for (const std::string &folder : suite.empty() ? listDirectory(data) : std::vector<std::string>{suite.str()})
    for (const std::string &entry : listDirectory((data + "/" + folder).str())) {
      std::string directory = (data + "/" + folder + "/" + entry).str(), name = folder + "/" + entry;
      if (StringRef(name).contains(filter) && sys::fs::exists(directory + "/model.onnx"))
        cases.push_back(readCase(directory, name));
    }
  if (cases.empty())
    return createStringError("no test case below '" + data + "'");
  return cases;
}

Expected<std::vector<tool::Tensor>> readTensors(ArrayRef<std::string> files) {
  std::vector<tool::Tensor> tensors;
  for (const std::string &file : files) {
    auto tensor = tool::readTensor(file);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Error compare(const tool::Tensor &got, const tool::Tensor &want) {
  if (got.dtype != want.dtype || got.dims != want.dims)
    return createStringError("is " + tool::describe(got.dtype, got.dims) + " when it should be " +
                             tool::describe(want.dtype, want.dims));
  if (!isFloat(want.dtype)) {
    if (got.bytes == want.bytes)
      return Error::success();
    size_t at = std::mismatch(got.bytes.begin(), got.bytes.end(), want.bytes.begin()).first - got.bytes.begin();
    return createStringError("differs in element " + Twine(at / tool::dtypeSize(want.dtype)));
  }
  double limit = tolerance(want.dtype);
  for (size_t i = 0, count = want.bytes.size() / tool::dtypeSize(want.dtype); i < count; ++i) {
    double a = loadFloat(got, i), b = loadFloat(want, i);
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= limit + limit * std::fabs(b);
    if (!same || (std::isinf(b) && a != b))
      return createStringError("element " + Twine(i) + " is " + std::to_string(a) + " when it should be " +
                               std::to_string(b));
  }
  return Error::success();
}

Expected<std::set<std::string>> readTable(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError("cannot read '" + path + "': " + buffer.getError().message());
  std::set<std::string> names;
  for (line_iterator line(**buffer, /*SkipBlanks=*/true, '#'); !line.is_at_end(); ++line)
    names.insert(line->trim().str());
  return names;
}

Error writeTable(StringRef path, const std::set<std::string> &names) {
  std::error_code error;
  raw_fd_ostream out(path, error);
  if (error)
    return createStringError("cannot write '" + path + "': " + error.message());
  out << "# Cases of the ONNX standard that must pass. Rewritten by `conformance --update`.\n";
  for (const std::string &name : names)
    out << name << "\n";
  return Error::success();
}

} // namespace vmpack::conformance
