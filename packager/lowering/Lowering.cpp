//===- Lowering.cpp - the one list of passes ------------------------------------------------------------===//
#include "packager/lowering/Lowering.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace vmpack::lowering {
namespace {

/// Names each pass as it starts.
struct Narrator : PassInstrumentation {
  void runBeforePass(Pass *pass, Operation *) override {
    StringRef name = pass->getArgument().empty() ? pass->getName() : pass->getArgument();
    if (name != last)
      llvm::errs() << "lowering: " << name << '\n';
    last = name.str();
  }
  std::string last;
};

bool hasTosa(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa<tosa::TosaDialect>(op->getDialect()) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// Sizes are computed from the symbols alone, whatever made tensors of them.
void addSizeResolution(OpPassManager &pm) {
  pm.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  addCleanup(pm);
}

void addTensorPasses(OpPassManager &pm, bool withTosa, bool winograd) {
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  if (withTosa)
    tosa::addTosaToLinalgPasses(pm, TosaToLinalgOptions(), TosaToLinalgNamedOptions(), std::nullopt);
  pm.addPass(createBoundaryPass());
  addSizeResolution(pm);
  pm.addNestedPass<func::FuncOp>(createFoldConstantsPass());
  pm.addNestedPass<func::FuncOp>(createLayoutPass());
  addCleanup(pm);
  pm.addNestedPass<func::FuncOp>(createFoldConstantsPass());
  pm.addNestedPass<func::FuncOp>(createKernelsPass(winograd));
  pm.addNestedPass<func::FuncOp>(createFuseElementwisePass());
  addSizeResolution(pm);
  pm.addNestedPass<func::FuncOp>(createDestinationsPass());
}

void addBufferPasses(OpPassManager &pm) {
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.allowReturnAllocsFromLoops = true;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  addSizeResolution(pm);
  pm.addNestedPass<func::FuncOp>(bufferization::createBufferHoistingPass());
  pm.addPass(createDispatchesPass());
  addCleanup(pm);
  pm.addPass(createArenaPass());
  addCleanup(pm);
}

void addLlvmPasses(OpPassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  addCleanup(pm);
  pm.addPass(createToLlvmPass());
  addCleanup(pm);
}

} // namespace

LogicalResult lower(ModuleOp module, Stage stage, const LoweringOptions &options) {
  PassManager pm(module.getContext());
  if (options.verbose)
    pm.addInstrumentation(std::make_unique<Narrator>());
  addTensorPasses(pm, hasTosa(module), options.winograd);
  addBufferPasses(pm);
  if (stage == Stage::Llvm)
    addLlvmPasses(pm);
  return pm.run(module);
}

void registerDialects(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect, cf::ControlFlowDialect,
              func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, tensor::TensorDialect, tosa::TosaDialect, dialect::VmpkDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  func::registerInlinerExtension(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  dialect::registerBufferization(registry);
}

} // namespace vmpack::lowering
