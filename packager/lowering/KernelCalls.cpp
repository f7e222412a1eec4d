//===- KernelCalls.cpp - kernel ops of a dispatch as calls of the kernel library ------------------------===//
#include "packager/lowering/KernelCalls.h"
#include "packager/dialect/Vmpk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {

bool isKernelOp(Operation *op) { return isa<GemmOp, PackOp, ConvOp, WinogradOp, DepthwiseOp>(op); }

unsigned kernelTileDims(Operation *op) {
  int64_t rank = cast<MemRefType>(op->getOperands().back().getType()).getRank();
  // Batch and rows of a gemm, batch and panels of a pack, image and output rows of the windows.
  return isa<GemmOp>(op) ? rank - 1 : isa<PackOp>(op) ? rank - 2 : 2;
}

uint64_t kernelFlops(Operation *op) {
  auto out = cast<MemRefType>(op->getOperands().back().getType());
  if (!out.hasStaticShape())
    return 0;
  uint64_t elements = out.getNumElements();
  if (auto gemm = dyn_cast<GemmOp>(op)) {
    int64_t k = cast<MemRefType>(gemm.getA().getType()).getShape().back();
    return ShapedType::isDynamic(k) ? 0 : 2 * elements * k;
  }
  if (auto conv = dyn_cast<ConvOp>(op))
    return 2 * elements * cast<MemRefType>(conv.getWeights().getType()).getDimSize(1);
  // What a direct convolution would take, so that rates can be compared.
  if (auto winograd = dyn_cast<WinogradOp>(op))
    return 2 * elements * 9 * cast<MemRefType>(winograd.getWeights().getType()).getDimSize(2);
  if (auto depthwise = dyn_cast<DepthwiseOp>(op))
    return 2 * elements * depthwise.getKernel()[0] * depthwise.getKernel()[1];
  return 0;
}

namespace {

/// Builds the operands of one kernel call.
class CallBuilder {
public:
  CallBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value number(FloatAttr value) { return arith::ConstantOp::create(builder, loc, value); }
  Value null() { return NullOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext())); }
  Value size(Value memref, int64_t dim) {
    return getValueOrCreateConstantIndexOp(builder, loc, memref::getMixedSize(builder, loc, memref, dim));
  }

  /// The distance in elements between neighbours along `dim`.
  Value stride(Value memref, int64_t dim) {
    SmallVector<int64_t> strides;
    int64_t offset;
    auto type = cast<MemRefType>(memref.getType());
    if (succeeded(type.getStridesAndOffset(strides, offset)) && !ShapedType::isDynamic(strides[dim]))
      return index(strides[dim]);
    auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, memref);
    return metadata.getStrides()[dim];
  }

  /// The part of `memref` that starts at `offsets` in its leading dims.
  Value from(Value memref, ValueRange offsets) {
    auto type = cast<MemRefType>(memref.getType());
    SmallVector<OpFoldResult> begins, sizes, strides(type.getRank(), builder.getIndexAttr(1));
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      bool cut = dim < int64_t(offsets.size());
      begins.push_back(cut ? OpFoldResult(offsets[dim]) : OpFoldResult(builder.getIndexAttr(0)));
      // The extent only matters to the verifier: the kernel is told its own.
      sizes.push_back(cut ? OpFoldResult(builder.getIndexAttr(1)) : memref::getMixedSize(builder, loc, memref, dim));
    }
    return memref::SubViewOp::create(builder, loc, memref, begins, sizes, strides);
  }

  Value optional(Value memref) { return memref ? memref : null(); }
  Value difference(TileRange range) { return arith::SubIOp::create(builder, loc, range.end, range.begin); }
  void call(StringRef callee, ValueRange inputs) { CallOp::create(builder, loc, callee, inputs); }

  /// Runs `body` for each index below the range's end, from its beginning.
  void forEach(TileRange range, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, range.begin, range.end, index(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

private:
  OpBuilder &builder;
  Location loc;
};

void emitGemm(CallBuilder &calls, GemmOp op, ArrayRef<TileRange> tile) {
  Value a = op.getA(), b = op.getB(), out = op.getOut();
  int64_t rank = cast<MemRefType>(a.getType()).getRank();
  bool batchedB = cast<MemRefType>(b.getType()).getRank() == rank + 1;
  TileRange rows = tile.back();
  auto emitRows = [&](ValueRange batch) {
    SmallVector<Value> start(batch);
    start.push_back(rows.begin);
    calls.call("vmpk_gemm_f32", {calls.from(a, start), calls.stride(a, rank - 2), batchedB ? calls.from(b, batch) : b,
                                 calls.from(out, start), calls.stride(out, rank - 2), calls.difference(rows),
                                 calls.size(out, rank - 1), calls.size(a, rank - 1), calls.optional(op.getBias()),
                                 calls.number(op.getLowAttr()), calls.number(op.getHighAttr())});
  };
  if (rank == 2)
    return emitRows({});
  calls.forEach(tile.front(), [&](Value batch) { emitRows(batch); });
}

void emitPack(CallBuilder &calls, PackOp op, ArrayRef<TileRange> tile) {
  Value source = op.getSource(), out = op.getOut();
  int64_t rank = cast<MemRefType>(source.getType()).getRank();
  int64_t k = op.getTransposed() ? rank - 1 : rank - 2, n = op.getTransposed() ? rank - 2 : rank - 1;
  TileRange panels = tile.back();
  auto emitPanels = [&](ValueRange batch) {
    calls.call("vmpk_pack_panels_f32", {batch.empty() ? source : calls.from(source, batch), calls.stride(source, k),
                                        calls.stride(source, n), batch.empty() ? out : calls.from(out, batch),
                                        calls.size(source, k), calls.size(source, n), panels.begin, panels.end});
  };
  if (rank == 2)
    return emitPanels({});
  calls.forEach(tile.front(), [&](Value batch) { emitPanels(batch); });
}

template <typename WindowOp> void appendWindow(CallBuilder &calls, WindowOp op, SmallVectorImpl<Value> &operands) {
  for (ArrayRef<int64_t> pair : {op.getKernel(), op.getStrides(), op.getDilations(), op.getPads()})
    for (int64_t value : pair)
      operands.push_back(calls.index(value));
}

void emitConv(OpBuilder &builder, CallBuilder &calls, ConvOp op, ArrayRef<TileRange> tile) {
  Value x = op.getX(), out = op.getOut();
  calls.forEach(tile[0], [&](Value image) {
    Value outWidth = calls.size(out, 2);
    SmallVector<Value> operands{calls.from(x, image), op.getWeights(),  calls.from(out, image), calls.size(x, 1),
                                calls.size(x, 2),     calls.size(x, 3), calls.stride(x, 2)};
    appendWindow(calls, op, operands);
    operands.append({outWidth, calls.stride(out, 2),
                     arith::MulIOp::create(builder, op.getLoc(), tile[1].begin, outWidth),
                     arith::MulIOp::create(builder, op.getLoc(), tile[1].end, outWidth), calls.size(out, 3),
                     calls.optional(op.getBias()), calls.number(op.getLowAttr()), calls.number(op.getHighAttr())});
    calls.call("vmpk_conv_f32", operands);
  });
}

void emitWinograd(OpBuilder &builder, CallBuilder &calls, WinogradOp op, ArrayRef<TileRange> tile) {
  Value x = op.getX(), out = op.getOut(), rows = calls.index(op.getWorkgroupRows());
  Value workgroup = arith::DivUIOp::create(builder, op.getLoc(), tile[1].begin, rows);
  calls.forEach(tile[0], [&](Value image) {
    calls.call(op.getTile() == 2 ? "vmpk_winograd2_f32" : "vmpk_winograd4_f32",
               {calls.from(x, image), op.getWeights(), calls.from(out, image),
                calls.from(op.getScratch(), {image, workgroup}), calls.size(x, 1), calls.size(x, 2), calls.size(x, 3),
                calls.stride(x, 2), calls.index(op.getPads()[0]), calls.index(op.getPads()[1]), calls.size(out, 2),
                calls.stride(out, 2), tile[1].begin, tile[1].end, calls.size(out, 3), calls.index(op.getBlock()),
                op.getBias(), calls.number(op.getLowAttr()), calls.number(op.getHighAttr())});
  });
}

void emitDepthwise(CallBuilder &calls, DepthwiseOp op, ArrayRef<TileRange> tile) {
  Value x = op.getX(), out = op.getOut();
  calls.forEach(tile[0], [&](Value image) {
    SmallVector<Value> operands{
        calls.from(x, image), op.getWeights(),  calls.from(out, image),          calls.size(x, 1),
        calls.size(x, 2),     calls.size(x, 3), calls.stride(op.getWeights(), 0)};
    appendWindow(calls, op, operands);
    operands.append({calls.size(out, 2), tile[1].begin, tile[1].end, calls.optional(op.getBias()),
                     calls.number(op.getLowAttr()), calls.number(op.getHighAttr())});
    calls.call("vmpk_depthwise_f32", operands);
  });
}

} // namespace

LogicalResult emitKernelCall(OpBuilder &builder, Operation *op, ArrayRef<TileRange> tile) {
  CallBuilder calls(builder, op->getLoc());
  // Ranges for every dim that a kernel is split along; what the tile leaves out is whole.
  SmallVector<TileRange> full(tile);
  Value out = op->getOperands().back();
  while (full.size() < kernelTileDims(op))
    full.push_back({calls.index(0), calls.size(out, full.size())});
  if (auto gemm = dyn_cast<GemmOp>(op))
    emitGemm(calls, gemm, full);
  else if (auto pack = dyn_cast<PackOp>(op))
    emitPack(calls, pack, full);
  else if (auto conv = dyn_cast<ConvOp>(op))
    emitConv(builder, calls, conv, full);
  else if (auto winograd = dyn_cast<WinogradOp>(op))
    emitWinograd(builder, calls, winograd, full);
  else
    emitDepthwise(calls, cast<DepthwiseOp>(op), full);
  return success();
}

} // namespace vmpack::lowering
