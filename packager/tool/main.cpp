//===- main.cpp - vmpack ---------------------------------------------------------------------------------===//
#include "packager/tool/Driver.h"

#include "llvm/Support/InitLLVM.h"

using namespace llvm;
using namespace vmpack::tool;

namespace {

Error execute(const Options &options) {
  switch (options.command) {
  case Command::Pack:
    return pack(options, outs());
  case Command::Run:
    return run(options, outs());
  case Command::Inspect:
    return inspect(options, outs());
  case Command::Bench:
    return bench(options, outs());
  case Command::ListTargets:
    listTargets(outs());
    return Error::success();
  }
  llvm_unreachable("a command without a case");
}

/// Prints what failed: 1 when the user can mend it, 2 when it is vmpack's fault.
int exitCode(Error error) {
  int code = 0;
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    bool internal = info.isA<InternalError>();
    code = std::max(code, internal ? 2 : 1);
    errs() << (internal ? "vmpack: internal error: " : "vmpack: error: ") << info.message() << "\n";
  });
  return code;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  auto parsed = parse(argc, argv);
  if (auto *exit = std::get_if<Exit>(&parsed))
    return exit->code;
  return exitCode(execute(std::get<Options>(parsed)));
}
