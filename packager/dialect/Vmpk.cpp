//===- Vmpk.cpp - the vmpk dialect ----------------------------------------------------------------------===//
#include "packager/dialect/Vmpk.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace vmpack::dialect;

#include "packager/dialect/VmpkDialect.cpp.inc"

#define GET_OP_CLASSES
#include "packager/dialect/VmpkOps.cpp.inc"

void VmpkDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "packager/dialect/VmpkOps.cpp.inc"
      >();
}

//===-- Kernel ops --------------------------------------------------------------------------------------===//

/// On memrefs a kernel op reads its inputs and writes its destination; on tensors it is pure.
template <typename KernelOp>
static void kernelEffects(KernelOp op, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
  }
}

static int64_t rankOf(Value value) { return cast<ShapedType>(value.getType()).getRank(); }

LogicalResult GemmOp::verify() {
  int64_t rank = rankOf(getA());
  if ((rank != 2 && rank != 3) || rankOf(getOut()) != rank)
    return emitOpError("a and out must both have rank 2 or 3");
  if (rankOf(getB()) != 3 && rankOf(getB()) != rank + 1)
    return emitOpError("b must be panels, with or without the batch dim");
  return success();
}

LogicalResult PackOp::verify() {
  if (rankOf(getOut()) != rankOf(getSource()) + 1)
    return emitOpError("panels have one dim more than their source");
  return success();
}

template <typename WindowOp> static LogicalResult verifyWindow(WindowOp op) {
  if (rankOf(op.getX()) != 4 || rankOf(op.getOut()) != 4)
    return op.emitOpError("x and out must have rank 4");
  for (ArrayRef<int64_t> values : {op.getKernel(), op.getStrides(), op.getDilations(), op.getPads()})
    if (values.size() != 2)
      return op.emitOpError("kernel, strides, dilations and pads have two values each");
  return success();
}
LogicalResult ConvOp::verify() { return verifyWindow(*this); }
LogicalResult DepthwiseOp::verify() { return verifyWindow(*this); }

LogicalResult WinogradOp::verify() {
  if (rankOf(getX()) != 4 || rankOf(getOut()) != 4 || rankOf(getWeights()) != 4)
    return emitOpError("x, weights and out must have rank 4");
  int64_t positions = cast<ShapedType>(getWeights().getType()).getDimSize(0);
  if (positions != 16 && positions != 36)
    return emitOpError("weights must be for 16 or 36 positions of a tile");
  if (getPads().size() != 2)
    return emitOpError("pads has two values");
  return success();
}

int64_t WinogradOp::getTile() { return cast<ShapedType>(getWeights().getType()).getDimSize(0) == 16 ? 2 : 4; }

// Enough tiles that the weights, which every workgroup reads once, are well used; at most eight workgroups an image,
// since each has scratch memory of its own.
int64_t WinogradOp::getWorkgroupRows() {
  auto shape = cast<ShapedType>(getOut().getType()).getShape();
  int64_t down = llvm::divideCeil(shape[1], getTile()), across = llvm::divideCeil(shape[2], getTile());
  int64_t rows = std::max<int64_t>(llvm::divideCeil(24, across), llvm::divideCeil(down, 8));
  int64_t workgroups = llvm::divideCeil(down, rows);
  return llvm::divideCeil(down, workgroups) * getTile();
}

int64_t WinogradOp::getBlock() {
  int64_t across = llvm::divideCeil(cast<ShapedType>(getOut().getType()).getDimSize(2), getTile());
  return std::min<int64_t>(getWorkgroupRows() / getTile() * across, 36);
}

void GemmOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { kernelEffects(*this, effects); }
void PackOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { kernelEffects(*this, effects); }
void ConvOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { kernelEffects(*this, effects); }
void DepthwiseOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) { kernelEffects(*this, effects); }

void WinogradOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  kernelEffects(*this, effects);
  for (OpOperand &operand : getScratchMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
}

//===-- Constants ---------------------------------------------------------------------------------------===//

uint64_t vmpack::dialect::byteSize(ShapedType type) {
  return uint64_t(type.getNumElements()) * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

void vmpack::dialect::writeElements(ElementsAttr value, MutableArrayRef<char> out) {
  uint64_t size = byteSize(value.getShapedType());
  assert(out.size() == size && "room for all elements");
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
    std::copy_n(data.begin(), std::min<uint64_t>(size, data.size()), out.begin());
    return;
  }
  auto dense = cast<DenseElementsAttr>(value);
  if (value.getElementType().isInteger(1)) {
    for (auto [index, bit] : llvm::enumerate(dense.getValues<bool>()))
      out[index] = bit;
    return;
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat()) {
    std::copy(raw.begin(), raw.end(), out.begin());
    return;
  }
  for (uint64_t offset = 0; offset < size; offset += raw.size())
    std::copy(raw.begin(), raw.end(), out.begin() + offset);
}

//===-- Bufferization -----------------------------------------------------------------------------------===//

namespace {
template <typename KernelOp>
struct KernelBufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<KernelBufferization<KernelOp>, KernelOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const bufferization::AnalysisState &) const {
    return cast<DestinationStyleOpInterface>(op).isDpsInput(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = bufferization::getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    OperationState newOp(op->getLoc(), op->getName(), operands, TypeRange{}, op->getAttrs());
    newOp.propertiesAttr = op->getPropertiesAsAttribute();
    rewriter.create(newOp);
    bufferization::replaceOpWithBufferizedValues(rewriter, op, operands.back());
    return success();
  }
};
} // namespace

void vmpack::dialect::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, VmpkDialect *) {
    GemmOp::attachInterface<KernelBufferization<GemmOp>>(*context);
    PackOp::attachInterface<KernelBufferization<PackOp>>(*context);
    ConvOp::attachInterface<KernelBufferization<ConvOp>>(*context);
    WinogradOp::attachInterface<KernelBufferization<WinogradOp>>(*context);
    DepthwiseOp::attachInterface<KernelBufferization<DepthwiseOp>>(*context);
  });
}
