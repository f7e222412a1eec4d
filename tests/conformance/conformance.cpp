//===- conformance.cpp - runs the ONNX standard's own test cases ------------------------------------------===//
//
//   conformance DATA_DIR TABLE [--suite NAME] [--filter TEXT] [--jobs N] [--update] [--verbose]
//
// DATA_DIR/SUITE/CASE holds model.onnx and test_data_set_*/{input,output}_*.pb. Each case is compiled, run by the JIT
// and compared, in a process of its own. A case of TABLE must pass; a case that is not in TABLE may be unsupported,
// which has to be a clear error of the frontend. Exits 1 when a case fails, or when a case passes that TABLE does not
// list.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tests/conformance/Cases.h"

#include "packager/tool/Executable.h"
#include "vmpk/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace vmpack;
using namespace vmpack::conformance;

namespace {

cl::opt<std::string> dataDir(cl::Positional, cl::Required, cl::desc("DATA_DIR"));
cl::opt<std::string> tablePath(cl::Positional, cl::Required, cl::desc("TABLE"));
cl::opt<std::string> suiteOption("suite", cl::desc("only this suite"));
cl::opt<std::string> filter("filter", cl::desc("only cases whose name holds this text"));
cl::opt<unsigned> jobs("jobs", cl::init(2), cl::desc("cases at a time"));
cl::opt<bool> update("update", cl::desc("rewrite TABLE from what passes"));
cl::opt<bool> verbose("verbose", cl::desc("say why a case is unsupported"));

/// Seconds after which a case is taken for hung; the slowest takes a few.
constexpr unsigned patience = 120;

/// A case whose inputs are not what its own model declares (four of ONNX 1.12 are so): the clear error is all we owe.
class Contradiction : public ErrorInfo<Contradiction, StringError> {
public:
  static char ID;
  explicit Contradiction(const Twine &message)
      : ErrorInfo<Contradiction, StringError>(message, inconvertibleErrorCode()) {}
};
char Contradiction::ID = 0;

/// The data keeps bf16, which numpy lacks, as u16.
void restoreBfloats(MutableArrayRef<tool::Tensor> tensors, ArrayRef<targets::Tensor> signature) {
  for (auto [tensor, entry] : zip(tensors, signature))
    if (entry.dtype == VMPK_DTYPE_BF16 && tensor.dtype == VMPK_DTYPE_U16)
      tensor.dtype = VMPK_DTYPE_BF16;
}

Error runDataSet(tool::Executable &executable, const DataSet &set) {
  auto inputs = readTensors(set.inputs);
  if (!inputs)
    return inputs.takeError();
  auto wanted = readTensors(set.outputs);
  if (!wanted)
    return wanted.takeError();
  restoreBfloats(*inputs, executable.signature().inputs);
  restoreBfloats(*wanted, executable.signature().outputs);
  if (Error error = executable.bind(std::move(*inputs)))
    return make_error<Contradiction>("its data does not fit its model: " + toString(std::move(error)));
  if (Error error = executable.invoke())
    return error;
  if (executable.outputs().size() != wanted->size())
    return createStringError("has " + Twine(executable.outputs().size()) + " outputs when it should have " +
                             Twine(wanted->size()));
  for (auto [index, want] : enumerate(*wanted))
    if (Error error = compare(executable.outputs()[index], want))
      return createStringError("output " + Twine(index) + ": " + toString(std::move(error)));
  return Error::success();
}

/// The whole way of one case, in the child process.
Result runCase(tool::Compiler &compiler, const Case &test) {
  auto module = compiler.compile({test.model, "conformance", {}});
  if (!module) {
    Error error = module.takeError();
    bool internal = error.isA<tool::InternalError>();
    return {internal ? Outcome::Failed : Outcome::Unsupported, toString(std::move(error))};
  }
  auto executable = tool::openJit(*module, {});
  if (!executable)
    return {Outcome::Failed, "jit: " + toString(executable.takeError())};
  for (const DataSet &set : test.dataSets)
    if (Error error = runDataSet(**executable, set)) {
      bool contradicts = error.isA<Contradiction>();
      return {contradicts ? Outcome::Unsupported : Outcome::Failed, toString(std::move(error))};
    }
  return {Outcome::Passed, ""};
}

/// A child at work and the pipe of its answer.
struct Worker {
  size_t index;
  int answer;
};

pid_t start(tool::Compiler &compiler, const Case &test, int &answer) {
  int ends[2];
  if (pipe(ends) != 0)
    report_fatal_error("pipe failed");
  pid_t child = fork();
  if (child != 0) {
    close(ends[1]);
    answer = ends[0];
    return child;
  }
  close(ends[0]);
  alarm(patience);
  Result result = runCase(compiler, test);
  std::string text = char('0' + static_cast<int>(result.outcome)) + StringRef(result.message).take_front(60000).str();
  ssize_t written = write(ends[1], text.data(), text.size());
  // The parent's streams and exit handlers are not the child's to run.
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

/// The child's answer, or how it died.
Result finish(int answer, int status) {
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(answer, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(size));
  close(answer);
  if (WIFSIGNALED(status))
    return {Outcome::Failed,
            WTERMSIG(status) == SIGALRM ? "hangs" : "dies of signal " + std::to_string(WTERMSIG(status))};
  if (text.empty() || WEXITSTATUS(status) != 0)
    return {Outcome::Failed, "exits with " + std::to_string(WEXITSTATUS(status))};
  return {static_cast<Outcome>(text[0] - '0'), text.substr(1)};
}

std::vector<Result> runAll(ArrayRef<Case> cases) {
  tool::Compiler compiler([](const Twine &) {}, /*verbose=*/false, /*threads=*/false);
  std::vector<Result> results(cases.size());
  std::map<pid_t, Worker> working;
  for (size_t next = 0; next < cases.size() || !working.empty();) {
    while (next < cases.size() && working.size() < std::max(1u, jobs.getValue())) {
      Worker worker{next, -1};
      pid_t child = start(compiler, cases[next++], worker.answer);
      working.emplace(child, worker);
    }
    int status = 0;
    pid_t child = wait(&status);
    auto worker = working.find(child);
    if (worker == working.end())
      continue;
    results[worker->second.index] = finish(worker->second.answer, status);
    working.erase(worker);
  }
  return results;
}

/// Prints each case that is not as the table says; true when there is none.
bool judge(ArrayRef<Case> cases, ArrayRef<Result> results, const std::set<std::string> &table) {
  bool good = true;
  size_t counts[3] = {};
  for (auto [test, result] : zip(cases, results)) {
    ++counts[static_cast<int>(result.outcome)];
    bool listed = table.count(test.name), passed = result.outcome == Outcome::Passed;
    if (result.outcome == Outcome::Failed || (listed && !passed))
      outs() << (result.outcome == Outcome::Failed ? "FAILED " : "NOT SUPPORTED ANY MORE ") << test.name << ": "
             << result.message << "\n";
    else if (passed && !listed && !update)
      outs() << "PASSES BUT IS NOT LISTED " << test.name << "\n";
    else if (verbose && !passed)
      outs() << "unsupported " << test.name << ": " << result.message << "\n";
    // A failure outside the table is a gap of a kernel or a pass, which the table may not hide.
    good &= passed ? listed || update : !listed && result.outcome == Outcome::Unsupported;
  }
  outs() << counts[0] << " passed, " << counts[1] << " failed, " << counts[2] << " unsupported\n";
  return good;
}

} // namespace

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "runs the ONNX standard's test cases\n");
  auto cases = findCases(dataDir, suiteOption, filter);
  if (!cases) {
    errs() << "conformance: " << toString(cases.takeError()) << "\n";
    return 1;
  }
  auto table = readTable(tablePath);
  if (!table) {
    errs() << "conformance: " << toString(table.takeError()) << "\n";
    return 1;
  }
  std::vector<Result> results = runAll(*cases);
  bool good = judge(*cases, results, *table);
  if (update) {
    for (auto [test, result] : zip(*cases, results))
      if (result.outcome == Outcome::Passed)
        table->insert(test.name);
      else
        table->erase(test.name);
    if (Error error = writeTable(tablePath, *table)) {
      errs() << "conformance: " << toString(std::move(error)) << "\n";
      return 1;
    }
  }
  return good ? 0 : 1;
}
