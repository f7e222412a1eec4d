#include "packager/frontend/MlirImporter.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Support/SourceMgr.h"

using namespace vmpack::frontend;

namespace {
/// Writes diagnostics as "file:line:col: error: …" into a string.
class Collector : public mlir::ScopedDiagnosticHandler {
public:
  explicit Collector(mlir::MLIRContext *context) : ScopedDiagnosticHandler(context) {
    setHandler([this](mlir::Diagnostic &diagnostic) {
      add(diagnostic);
      for (mlir::Diagnostic &note : diagnostic.getNotes())
        add(note);
      return mlir::success();
    });
  }
  std::string text;

private:
  void add(mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream stream(text);
    if (!text.empty())
      stream << '\n';
    if (auto location = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>())
      stream << location.getFilename().getValue() << ':' << location.getLine() << ':' << location.getColumn() << ": ";
    switch (diagnostic.getSeverity()) {
    case mlir::DiagnosticSeverity::Error:
      stream << "error: ";
      break;
    case mlir::DiagnosticSeverity::Warning:
      stream << "warning: ";
      break;
    case mlir::DiagnosticSeverity::Note:
      stream << "note: ";
      break;
    case mlir::DiagnosticSeverity::Remark:
      stream << "remark: ";
      break;
    }
    stream << diagnostic.str();
  }
};
} // namespace

static mlir::LogicalResult checkType(mlir::func::FuncOp function, mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isIntOrFloat())
    return function.emitError("public function '")
           << function.getName() << "' has " << type << ", which is no ranked tensor of integers or floats";
  return mlir::success();
}

static mlir::LogicalResult checkEntryPoints(mlir::ModuleOp module) {
  bool any = false;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    if (!function.isPublic())
      continue;
    if (function.isDeclaration())
      return function.emitError("public function '") << function.getName() << "' has no body";
    any = true;
    for (mlir::Type type : llvm::concat<const mlir::Type>(function.getArgumentTypes(), function.getResultTypes()))
      if (mlir::failed(checkType(function, type)))
        return mlir::failure();
  }
  return any ? mlir::success() : module.emitError("there is no public function to be an entry point");
}

/// Calls are inlined: the called function must be here, and must not come back to itself.
static mlir::LogicalResult checkCalls(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  bool failed = module
                    .walk([&](mlir::func::CallOp call) {
                      auto callee = symbols.lookup<mlir::func::FuncOp>(call.getCallee());
                      if (callee && !callee.isDeclaration())
                        return mlir::WalkResult::advance();
                      call.emitError("the called function '") << call.getCallee() << "' has no body";
                      return mlir::WalkResult::interrupt();
                    })
                    .wasInterrupted();
  const mlir::CallGraph graph(module);
  for (auto component = llvm::scc_begin(&graph); !failed && !component.isAtEnd(); ++component)
    if (component.hasCycle()) {
      mlir::Operation *function = component->front()->getCallableRegion()->getParentOp();
      return function->emitError("function '")
             << mlir::SymbolTable::getSymbolName(function).getValue() << "' calls itself; recursion is not supported";
    }
  return mlir::failure(failed);
}

/// Fixes or bounds dims that arguments name by `vmpk.dims`.
static llvm::Error applyDims(mlir::ModuleOp module, const ImportOptions &options) {
  mlir::Builder builder(module.getContext());
  llvm::StringMap<char> seen;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    llvm::SmallVector<mlir::NamedAttribute> bounds;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto dims = function.getArgAttrOfType<mlir::ArrayAttr>(i, "vmpk.dims"))
        for (mlir::Attribute dim : dims)
          if (auto name = llvm::dyn_cast<mlir::StringAttr>(dim))
            if (auto bound = options.dims.find(name); bound != options.dims.end()) {
              if (seen.try_emplace((function.getName() + "\0" + name.getValue()).str()).second)
                bounds.push_back(builder.getNamedAttr(
                    name, builder.getI64ArrayAttr({bound->second.minimum, bound->second.maximum})));
              seen.try_emplace(name);
            }
    if (!bounds.empty())
      function->setAttr("vmpk.bounds", builder.getDictionaryAttr(bounds));
  }
  for (const auto &bound : options.dims)
    if (!seen.count(bound.getKey()))
      return llvm::createStringError("the model has no symbolic dim '" + bound.getKey().str() + "'");
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
vmpack::frontend::importMlir(mlir::MLIRContext &context, llvm::StringRef path,
                             std::unique_ptr<llvm::MemoryBuffer> buffer, const ImportOptions &options) {
  Collector collector(&context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  mlir::ParserConfig config(&context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, config);
  if (!module || mlir::failed(checkEntryPoints(*module)) || mlir::failed(checkCalls(*module)))
    return llvm::createStringError(collector.text.empty() ? "the module does not parse" : collector.text);
  if (llvm::Error error = applyDims(*module, options))
    return error;
  return module;
}
