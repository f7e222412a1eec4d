// Contractions and windows: linalg's named ops, in NHWC.
#include "packager/frontend/Emitter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace vmpack::frontend;
namespace linalg = mlir::linalg;

static mlir::DenseIntElementsAttr vectorAttribute(Emitter &emitter, llvm::ArrayRef<int64_t> values) {
  return emitter.builder.getI64TensorAttr(values);
}

Tensor Emitter::matmul(const Tensor &a, const Tensor &b) {
  Dims shape = a.shape;
  shape.back() = b.shape.back();
  mlir::Value inputs[] = {valueOf(a), valueOf(b)};
  mlir::Value init = filled(a.elem, shape, Number{});
  mlir::Operation *op = shape.size() == 2
                            ? linalg::MatmulOp::create(builder, location, init.getType(), inputs, init).getOperation()
                            : linalg::BatchMatmulOp::create(builder, location, init.getType(), inputs, init);
  return ofValue(a.elem, shape, op->getResult(0));
}

Tensor Emitter::convolution(const Tensor &x, const Tensor &weights, const Window &window, llvm::ArrayRef<Dim> shape) {
  mlir::Value inputs[] = {valueOf(x), valueOf(weights)};
  mlir::Value init = filled(x.elem, shape, Number{});
  auto op = linalg::Conv2DNhwcHwcfOp::create(builder, location, init.getType(), inputs, init,
                                             vectorAttribute(*this, window.strides),
                                             vectorAttribute(*this, window.dilations));
  return ofValue(x.elem, shape, op.getResult(0));
}

Tensor Emitter::depthwiseConvolution(const Tensor &x, const Tensor &weights, const Window &window,
                                     llvm::ArrayRef<Dim> shape) {
  mlir::Value inputs[] = {valueOf(x), valueOf(weights)};
  mlir::Value init = filled(x.elem, shape, Number{});
  auto op = linalg::DepthwiseConv2DNhwcHwcOp::create(builder, location, init.getType(), inputs, init,
                                                     vectorAttribute(*this, window.strides),
                                                     vectorAttribute(*this, window.dilations));
  return ofValue(x.elem, shape, op.getResult(0));
}

Tensor Emitter::pool(const Tensor &x, const Window &window, llvm::ArrayRef<Dim> shape, bool maximum) {
  ScalarBuilder scalars(*this, builder, location);
  mlir::Value inputs[] = {valueOf(x), empty(x.elem, dims(window.kernel))};
  mlir::Value init = filled(x.elem, shape, maximum ? scalars.extreme(x.elem, true).number : Number{});
  mlir::Attribute strides = vectorAttribute(*this, window.strides),
                  dilations = vectorAttribute(*this, window.dilations);
  mlir::Operation *op;
  if (!maximum)
    op = linalg::PoolingNhwcSumOp::create(builder, location, init.getType(), inputs, init, strides, dilations);
  else if (isUnsigned(x.elem))
    op = linalg::PoolingNhwcMaxUnsignedOp::create(builder, location, init.getType(), inputs, init, strides, dilations);
  else
    op = linalg::PoolingNhwcMaxOp::create(builder, location, init.getType(), inputs, init, strides, dilations);
  return ofValue(x.elem, shape, op->getResult(0));
}
