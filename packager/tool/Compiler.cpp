//===- Compiler.cpp - the only file of the tool that sees MLIR ------------------------------------------===//
#include "packager/tool/Compiler.h"

#include "packager/frontend/Frontend.h"
#include "packager/lowering/Lowering.h"
#include "packager/translation/Translation.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace vmpack::tool {

char InternalError::ID = 0;

namespace {

mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  frontend::registerDialects(registry);
  lowering::registerDialects(registry);
  translation::registerDialects(registry);
  return registry;
}

/// A location as people write it: file:line:column, or the source node's name.
void print(raw_ostream &out, mlir::Location location) {
  if (auto file = dyn_cast<mlir::FileLineColLoc>(location))
    out << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
  else if (auto name = dyn_cast<mlir::NameLoc>(location))
    out << "node '" << name.getName().getValue() << "': ";
  else if (!isa<mlir::UnknownLoc>(location))
    out << location << ": ";
}

} // namespace

/// The context, and what its diagnostics said since the last failure.
struct Compiler::Session {
  Log log;
  bool verbose;
  mlir::MLIRContext context;
  std::string diagnostics;

  Session(Log log, bool verbose, bool threads)
      : log(std::move(log)), verbose(verbose),
        context(allDialects(),
                threads ? mlir::MLIRContext::Threading::ENABLED : mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        collect(diagnostic);
      return mlir::success();
    });
  }

  void collect(mlir::Diagnostic &diagnostic) {
    raw_string_ostream out(diagnostics);
    out << (diagnostics.empty() ? "" : "\n");
    print(out, diagnostic.getLocation());
    out << diagnostic.str();
    for (mlir::Diagnostic &note : diagnostic.getNotes()) {
      out << "\n  note: ";
      print(out, note.getLocation());
      out << note.str();
    }
  }

  std::string takeDiagnostics(const Twine &otherwise) {
    std::string text = diagnostics.empty() ? otherwise.str() : std::move(diagnostics);
    diagnostics.clear();
    return text;
  }

  Expected<mlir::OwningOpRef<mlir::ModuleOp>> import(const Input &input) {
    log("frontend: " + input.path);
    frontend::ImportOptions options;
    for (auto &[name, bounds] : input.dims)
      options.dims[name] = {bounds.first, bounds.second};
    diagnostics.clear();
    auto module = frontend::importModel(context, input.path, options);
    if (!module) {
      std::string message = toString(module.takeError());
      // Frontends say in words what failed, the verifier says where.
      std::string located = takeDiagnostics("");
      return userError(located.empty() || message.find(located) != std::string::npos ? message
                                                                                     : message + "\n" + located);
    }
    return module;
  }

  Error lower(mlir::ModuleOp module, lowering::Stage stage, bool winograd) {
    log(stage == lowering::Stage::Lowered ? "lowering: to dispatches and schedule" : "lowering: to the LLVM dialect");
    if (failed(lowering::lower(module, stage, {winograd, verbose})))
      return make_error<InternalError>(takeDiagnostics("the lowering failed without a word"));
    return Error::success();
  }

  Expected<targets::SharedModule> translate(mlir::ModuleOp module, StringRef name) {
    log("translation: module '" + name + "'");
    auto shared = translation::translate(module, name);
    if (!shared)
      return make_error<InternalError>(takeDiagnostics("") + toString(shared.takeError()));
    return shared;
  }
};

Compiler::Compiler(Log log, bool verbose, bool threads)
    : session(std::make_unique<Session>(std::move(log), verbose, threads)) {}
Compiler::~Compiler() = default;

Expected<targets::SharedModule> Compiler::compile(const Input &input) {
  auto module = session->import(input);
  if (!module)
    return module.takeError();
  if (Error error = session->lower(**module, lowering::Stage::Llvm, input.winograd))
    return error;
  return session->translate(**module, input.name);
}

Expected<std::string> Compiler::emit(const Input &input, Emit station) {
  auto module = session->import(input);
  if (!module)
    return module.takeError();
  if (station == Emit::Lowered || station == Emit::Llvm)
    if (Error error = session->lower(
            **module, station == Emit::Lowered ? lowering::Stage::Lowered : lowering::Stage::Llvm, input.winograd))
      return error;
  if (station == Emit::Bitcode) {
    if (Error error = session->lower(**module, lowering::Stage::Llvm, input.winograd))
      return error;
    auto shared = session->translate(**module, input.name);
    if (!shared)
      return shared.takeError();
    return std::string(shared->bitcode.begin(), shared->bitcode.end());
  }
  std::string text;
  raw_string_ostream out(text);
  mlir::OpPrintingFlags flags;
  (*module)->print(out, flags.enableDebugInfo(true));
  out << "\n";
  return text;
}

std::string moduleName(StringRef path) {
  // A trailing slash or a bare suffix leaves no stem.
  std::string name = sys::path::stem(path).str();
  for (char &c : name)
    if (!isAlnum(c) && c != '_')
      c = '_';
  if (name.empty() || isDigit(name[0]))
    name.insert(0, "model_");
  return name;
}

} // namespace vmpack::tool
