// Moving elements without computing: tensor.* and linalg.transpose.
#include "packager/frontend/Emitter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace vmpack::frontend;
namespace tensor = mlir::tensor;
using Groups = llvm::SmallVector<std::pair<llvm::SmallVector<int64_t, 2>, llvm::SmallVector<int64_t, 2>>>;

static mlir::OpFoldResult foldResult(Emitter &emitter, Dim dim) {
  if (std::optional<int64_t> size = constantDim(dim))
    return emitter.builder.getIndexAttr(*size);
  return emitter.sizeOf(dim);
}

static llvm::SmallVector<mlir::OpFoldResult> foldResults(Emitter &emitter, llvm::ArrayRef<Dim> dims) {
  llvm::SmallVector<mlir::OpFoldResult> results;
  for (Dim dim : dims)
    results.push_back(foldResult(emitter, dim));
  return results;
}

static Dims pick(llvm::ArrayRef<Dim> dims, llvm::ArrayRef<int64_t> axes) {
  Dims picked;
  for (int64_t axis : axes)
    picked.push_back(dims[axis]);
  return picked;
}

/// Cuts two shapes of one size into the finest groups of equal products. What cannot be told apart is one group.
static Groups matchGroups(Emitter &emitter, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to) {
  Groups groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    auto &[sources, targets] = groups.emplace_back();
    sources.push_back(i++);
    targets.push_back(j++);
    while (true) {
      Dims top = pick(from, sources), bottom = pick(to, targets);
      if (emitter.productOf(top) == emitter.productOf(bottom))
        break;
      bool sourceIsLess = quotientOf(emitter.context, bottom, top).has_value();
      bool targetIsLess = quotientOf(emitter.context, top, bottom).has_value();
      std::optional<int64_t> left = constantDim(emitter.productOf(top)), right = constantDim(emitter.productOf(bottom));
      if (left && right)
        sourceIsLess = *left < *right, targetIsLess = !sourceIsLess;
      if (sourceIsLess && i < from.size()) {
        sources.push_back(i++);
      } else if (targetIsLess && j < to.size()) {
        targets.push_back(j++);
      } else {
        while (i < from.size())
          sources.push_back(i++);
        while (j < to.size())
          targets.push_back(j++);
        break;
      }
    }
  }
  for (; i < from.size(); ++i)
    groups.back().first.push_back(i);
  for (; j < to.size(); ++j)
    groups.back().second.push_back(j);
  return groups;
}

Tensor Emitter::reshape(const Tensor &source, llvm::ArrayRef<Dim> shape) {
  if (llvm::ArrayRef<Dim>(source.shape) == shape)
    return source;
  if (source.isKnown() && staticDims(shape))
    return Tensor{source.elem, Dims(shape), source.constant, source.elements, nullptr};
  if (isDim(productOf(source.shape), 0) || isDim(productOf(shape), 0))
    return ofValue(source.elem, shape, empty(source.elem, shape));
  mlir::Value value = valueOf(source);
  llvm::SmallVector<mlir::ReassociationIndices> collapse, expand;
  if (source.shape.empty()) {
    auto op = tensor::ExpandShapeOp::create(builder, location, typeOf(source.elem, shape), value, expand,
                                            foldResults(*this, shape));
    return ofValue(source.elem, shape, op);
  }
  if (shape.empty())
    return ofValue(source.elem, shape,
                   tensor::CollapseShapeOp::create(builder, location, typeOf(source.elem, shape), value, collapse));
  Dims before, after; // a collapsed group's size, as the collapse types it and as the expansion wants it
  bool collapses = false, expands = false;
  for (auto &[sources, targets] : matchGroups(*this, source.shape, shape)) {
    collapse.emplace_back(sources.begin(), sources.end());
    expand.emplace_back(targets.begin(), targets.end());
    collapses |= sources.size() > 1;
    expands |= targets.size() > 1;
    before.push_back(productOf(pick(source.shape, sources)));
    after.push_back(productOf(pick(shape, targets)));
  }
  if (collapses)
    value = tensor::CollapseShapeOp::create(builder, location, typeOf(source.elem, before), value, collapse);
  mlir::RankedTensorType joint = typeOf(source.elem, after);
  if (value.getType() != joint)
    value = tensor::CastOp::create(builder, location, joint, value);
  if (expands)
    value = tensor::ExpandShapeOp::create(builder, location, typeOf(source.elem, shape), value, expand,
                                          foldResults(*this, shape));
  return ofValue(source.elem, shape, value);
}

Tensor Emitter::transpose(const Tensor &source, llvm::ArrayRef<int64_t> permutation) {
  Dims shape = pick(source.shape, permutation);
  llvm::SmallVector<int64_t> order;
  for (int64_t axis : permutation)
    if (!isDim(source.shape[axis], 1))
      order.push_back(axis);
  if (llvm::is_sorted(order)) // only unit dims move
    return reshape(source, shape);
  if (source.isKnown() && staticDims(source.shape)) {
    Ints sizes = *staticDims(source.shape), strides(sizes.size(), 1), moved;
    for (int64_t axis = static_cast<int64_t>(sizes.size()) - 2; axis >= 0; --axis)
      strides[axis] = strides[axis + 1] * sizes[axis + 1];
    for (int64_t axis : permutation)
      moved.push_back(strides[axis]);
    return gatherKnown(source, shape, [&](llvm::ArrayRef<int64_t> index) {
      int64_t at = 0;
      for (size_t axis = 0; axis < index.size(); ++axis)
        at += index[axis] * moved[axis];
      return std::pair(0u, at);
    });
  }
  mlir::Value value = valueOf(source);
  auto op = mlir::linalg::TransposeOp::create(builder, location, value, empty(source.elem, shape), permutation);
  return ofValue(source.elem, shape, op->getResult(0));
}

Tensor Emitter::slice(const Tensor &source, llvm::ArrayRef<Dim> offsets, llvm::ArrayRef<Dim> sizes,
                      llvm::ArrayRef<int64_t> strides) {
  if (llvm::ArrayRef<Dim>(source.shape) == sizes)
    return source;
  if (isDim(productOf(sizes), 0))
    return ofValue(source.elem, sizes, empty(source.elem, sizes));
  if (source.isKnown() && staticDims(sizes) && staticDims(offsets) && staticDims(source.shape)) {
    Ints from = *staticDims(offsets), whole = *staticDims(source.shape);
    return gatherKnown(source, sizes, [&](llvm::ArrayRef<int64_t> index) {
      int64_t at = 0;
      for (size_t axis = 0; axis < index.size(); ++axis)
        at = at * whole[axis] + from[axis] + index[axis] * strides[axis];
      return std::pair(0u, at);
    });
  }
  mlir::Value value = valueOf(source);
  auto op =
      tensor::ExtractSliceOp::create(builder, location, typeOf(source.elem, sizes), value, foldResults(*this, offsets),
                                     foldResults(*this, sizes), foldResults(*this, dims(strides)));
  return ofValue(source.elem, sizes, op);
}

Tensor Emitter::concat(llvm::ArrayRef<Tensor> all, int64_t axis) {
  llvm::SmallVector<Tensor> tensors;
  Dim total = dim(0);
  for (const Tensor &part : all) {
    total = simplify(total + part.shape[axis]);
    if (!isDim(part.shape[axis], 0))
      tensors.push_back(part);
  }
  if (tensors.empty())
    return all.front();
  if (tensors.size() == 1)
    return tensors.front();
  Dims shape = tensors.front().shape;
  shape[axis] = total;
  if (isDim(productOf(shape), 0))
    return ofValue(all.front().elem, shape, empty(all.front().elem, shape));
  if (llvm::all_of(tensors, [](const Tensor &part) { return part.isKnown() && staticDims(part.shape); })) {
    return gatherKnown(tensors, shape, [&](llvm::ArrayRef<int64_t> index) {
      unsigned which = 0;
      int64_t along = index[axis], at = 0;
      for (; along >= *constantDim(tensors[which].shape[axis]); ++which)
        along -= *constantDim(tensors[which].shape[axis]);
      for (auto [i, size] : llvm::enumerate(tensors[which].shape))
        at = at * *constantDim(size) + (static_cast<int64_t>(i) == axis ? along : index[i]);
      return std::pair(which, at);
    });
  }
  mlir::Value result = empty(tensors.front().elem, shape);
  Dims offsets(shape.size(), dim(0));
  auto ones = foldResults(*this, Dims(shape.size(), dim(1)));
  for (const Tensor &part : tensors) {
    result = tensor::InsertSliceOp::create(builder, location, valueOf(part), result, foldResults(*this, offsets),
                                           foldResults(*this, part.shape), ones);
    offsets[axis] = simplify(offsets[axis] + part.shape[axis]);
  }
  return ofValue(tensors.front().elem, shape, result);
}

Tensor Emitter::pad(const Tensor &source, llvm::ArrayRef<Dim> before, llvm::ArrayRef<Dim> after, Number number) {
  Dims shape;
  bool pads = false;
  for (auto [size, low, high] : llvm::zip_equal(source.shape, before, after)) {
    shape.push_back(simplify(size + low + high));
    pads |= !isDim(low, 0) || !isDim(high, 0);
  }
  if (!pads)
    return source;
  ScalarBuilder scalars(*this, builder, location);
  mlir::Value value = valueOf(source), fill = scalars.materialize(Scalar(scalars, source.elem, number));
  auto op = tensor::PadOp::create(builder, location, typeOf(source.elem, shape), value, foldResults(*this, before),
                                  foldResults(*this, after), fill);
  return ofValue(source.elem, shape, op);
}

Tensor Emitter::flip(const Tensor &source, llvm::ArrayRef<int64_t> axes) {
  std::optional<Ints> sizes = staticDims(source.shape);
  if (source.isKnown() && sizes)
    return gatherKnown(source, source.shape, [&](llvm::ArrayRef<int64_t> index) {
      int64_t at = 0;
      for (auto [axis, size] : llvm::enumerate(*sizes))
        at = at * size + (llvm::is_contained(axes, static_cast<int64_t>(axis)) ? size - 1 - index[axis] : index[axis]);
      return std::pair(0u, at);
    });
  Tensor ready = source;
  valueOf(ready);
  return generate(source.elem, source.shape, [&](ScalarBuilder &s, llvm::ArrayRef<Scalar> index) {
    llvm::SmallVector<Scalar> from(index);
    for (int64_t axis : axes)
      from[axis] = s.position(source.shape[axis] - 1) - index[axis];
    return s.load(ready, from);
  });
}

Tensor Emitter::spread(const Tensor &source, llvm::ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return source;
  Dims shape;
  for (auto [size, stride] : llvm::zip_equal(source.shape, strides))
    shape.push_back(simplify((size - 1) * stride + 1));
  mlir::Value value = valueOf(source);
  auto op = tensor::InsertSliceOp::create(builder, location, value, filled(source.elem, shape, Number{}),
                                          foldResults(*this, Dims(shape.size(), dim(0))),
                                          foldResults(*this, source.shape), foldResults(*this, dims(strides)));
  return ofValue(source.elem, shape, op);
}

Tensor Emitter::insert(const Tensor &part, const Tensor &whole, llvm::ArrayRef<Dim> offsets) {
  mlir::Value source = valueOf(part), target = valueOf(whole);
  auto ones = foldResults(*this, Dims(whole.shape.size(), dim(1)));
  auto op = tensor::InsertSliceOp::create(builder, location, source, target, foldResults(*this, offsets),
                                          foldResults(*this, part.shape), ones);
  return ofValue(whole.elem, whole.shape, op);
}

llvm::Expected<Tensor> Emitter::expand(const Tensor &source, llvm::ArrayRef<Dim> shape) {
  VMPACK_TRY(Dims joint, broadcast({source.shape, Dims(shape)}));
  if (joint == source.shape)
    return source;
  return pointwiseTo(source.elem, joint, source, [](ScalarBuilder &, llvm::ArrayRef<Scalar> x) { return x[0]; });
}
