//===- Cases.h - the ONNX standard's test cases on disk, and when a result is right ----------------------===//
#ifndef VMPACK_TESTS_CONFORMANCE_CASES_H
#define VMPACK_TESTS_CONFORMANCE_CASES_H

#include "packager/tool/Tensors.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <set>
#include <string>
#include <vector>

namespace vmpack::conformance {

/// Files of one set of inputs and expected outputs, in the signature's order.
struct DataSet {
  std::vector<std::string> inputs, outputs;
};

struct Case {
  std::string name; ///< "SUITE/CASE"
  std::string model;
  std::vector<DataSet> dataSets;
};

enum class Outcome { Passed, Failed, Unsupported };

struct Result {
  Outcome outcome = Outcome::Failed;
  std::string message;
};

/// The cases below DATA/SUITE, sorted by name; an empty suite is all of them. An error when there is none.
llvm::Expected<std::vector<Case>> findCases(llvm::StringRef data, llvm::StringRef suite, llvm::StringRef filter);

llvm::Expected<std::vector<tool::Tensor>> readTensors(llvm::ArrayRef<std::string> files);

/// Success when `got` is `want`: same type and dims, integers equal, |got - want| <= t + t * |want| for floating point
/// with t = 1e-4 (1e-2 for f16, 4e-2 for bf16), NaN where NaN is wanted.
llvm::Error compare(const tool::Tensor &got, const tool::Tensor &want);

/// The table: one case a line, '#' comments.
llvm::Expected<std::set<std::string>> readTable(llvm::StringRef path);
llvm::Error writeTable(llvm::StringRef path, const std::set<std::string> &names);

} // namespace vmpack::conformance

#endif // VMPACK_TESTS_CONFORMANCE_CASES_H
