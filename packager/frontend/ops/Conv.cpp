// Convolutions. Inside, images are NHWC and weights HWCF (HWC depthwise); only two linalg ops are used:
//
//   1-D           as 2-D with H = 1
//   3-D           as a sum of 2-D ones over the depth of the window, with the depth of the image among the batches
//   depthwise     linalg.depthwise_conv_2d_nhwc_hwc; with a multiplier, over repeated channels
//   grouped       one convolution a group, of slices
//   transposed    zeros between the pixels, then a convolution with flipped weights
#include "packager/frontend/ops/Window.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// Slices [from, from + size) of one axis.
static Tensor sliceAxis(Emitter &emit, const Tensor &x, int64_t axis, Dim from, Dim size, int64_t stride = 1) {
  Dims offsets(x.rank(), emit.dim(0)), sizes = x.shape;
  Ints strides(x.rank(), 1);
  offsets[axis] = from;
  sizes[axis] = size;
  strides[axis] = stride;
  return emit.slice(x, offsets, sizes, strides);
}

/// x: padded NHWC; weights: [F, C/groups, kh, kw] → NHWC. Channels have been checked.
static Tensor convolveImage(Emitter &emit, const Tensor &x, const Tensor &weights, const Window &window, int64_t groups,
                            llvm::ArrayRef<Dim> spatial) {
  int64_t features = *constantDim(weights.shape[0]), channels = *constantDim(x.shape[3]);
  Dims shape{x.shape[0], spatial[0], spatial[1], emit.dim(features)};
  if (groups == 1)
    return emit.convolution(x, emit.transpose(weights, {2, 3, 1, 0}), window, shape);
  if (groups == channels) {
    int64_t multiplier = features / channels;
    Tensor repeated = x;
    if (multiplier > 1) {
      Dims whole = x.shape, ones = x.shape;
      whole.push_back(emit.dim(multiplier));
      ones.push_back(emit.dim(1));
      Tensor wide =
          emit.pointwiseTo(x.elem, whole, emit.reshape(x, ones), [](ScalarBuilder &, Scalars v) { return v[0]; });
      repeated = emit.reshape(wide, {x.shape[0], x.shape[1], x.shape[2], emit.dim(features)});
    }
    Tensor planes = emit.reshape(weights, {weights.shape[0], weights.shape[2], weights.shape[3]});
    return emit.depthwiseConvolution(repeated, emit.transpose(planes, {1, 2, 0}), window, shape);
  }
  llvm::SmallVector<Tensor> parts;
  int64_t in = channels / groups, out = features / groups;
  shape[3] = emit.dim(out);
  for (int64_t group = 0; group < groups; ++group) {
    Tensor image = sliceAxis(emit, x, 3, emit.dim(group * in), emit.dim(in));
    Tensor kernel = sliceAxis(emit, weights, 0, emit.dim(group * out), emit.dim(out));
    parts.push_back(emit.convolution(image, emit.transpose(kernel, {2, 3, 1, 0}), window, shape));
  }
  return emit.concat(parts, 3);
}

static Tensor padImage(Emitter &emit, const Tensor &x, const Window &window) {
  Dims before{emit.dim(0)}, after{emit.dim(0)};
  before.append(window.padBefore.begin(), window.padBefore.end());
  after.append(window.padAfter.begin(), window.padAfter.end());
  before.push_back(emit.dim(0));
  after.push_back(emit.dim(0));
  return emit.pad(x, before, after, Number{});
}

static Window dropDepth(const Window &window) {
  Window flat = window;
  flat.kernel.erase(flat.kernel.begin());
  flat.strides.erase(flat.strides.begin());
  flat.dilations.erase(flat.dilations.begin());
  return flat;
}

/// x: padded NDHWC; weights [F, C/groups, kd, kh, kw].
static Tensor convolveVolume(Emitter &emit, const Tensor &x, const Tensor &weights, const Window &window,
                             int64_t groups, llvm::ArrayRef<Dim> spatial) {
  Window flat = dropDepth(window);
  Tensor sum;
  for (int64_t k = 0; k < window.kernel[0]; ++k) {
    Tensor slabs = sliceAxis(emit, x, 1, emit.dim(k * window.dilations[0]), spatial[0], window.strides[0]);
    Dim images = emit.productOf({x.shape[0], spatial[0]});
    Tensor kernel = sliceAxis(emit, weights, 2, emit.dim(k), emit.dim(1));
    kernel = emit.reshape(kernel, {weights.shape[0], weights.shape[1], weights.shape[3], weights.shape[4]});
    Tensor part = convolveImage(emit, emit.reshape(slabs, {images, x.shape[2], x.shape[3], x.shape[4]}), kernel, flat,
                                groups, spatial.drop_front());
    sum =
        sum ? emit.pointwiseTo(x.elem, part.shape, {sum, part}, [](ScalarBuilder &, Scalars v) { return v[0] + v[1]; })
            : part;
  }
  return emit.reshape(sum, {x.shape[0], spatial[0], spatial[1], spatial[2], weights.shape[0]});
}

/// Adds the bias over the last dim.
static llvm::Expected<Tensor> addBias(Node &n, const Tensor &y, const Tensor &bias) {
  if (!bias)
    return y;
  if (bias.elem != y.elem || bias.rank() != 1 || bias.shape[0] != y.shape.back())
    return n.invalid("the bias has shape " + n.emit.describe(bias) + " when it should be " +
                     n.emit.describe(Dims{y.shape.back()}));
  return n.emit.pointwiseTo(y.elem, y.shape, {y, bias}, [](ScalarBuilder &, Scalars x) { return x[0] + x[1]; });
}

/// Checks what every convolution needs of its operands; answers the groups.
static llvm::Expected<int64_t> checkOperands(Node &n, const Tensor &x, const Tensor &weights, int64_t channelAxis) {
  VMPACK_CHECK(n.checkRank(0, 3));
  if (x.rank() > 5)
    return n.unsupported("a convolution of rank " + llvm::Twine(x.rank()) + " is not supported");
  if (weights.rank() != x.rank() || weights.elem != x.elem)
    return n.invalid("weights of shape " + n.emit.describe(weights) + " do not fit input " + n.emit.describe(x));
  std::optional<Ints> kernel = staticDims(weights.shape);
  std::optional<int64_t> channels = constantDim(x.shape[1]);
  if (!kernel || !channels)
    return n.unsupported("weights or channels of symbolic size are not supported");
  int64_t groups = n.integer("group", 1), wanted = (*kernel)[channelAxis];
  if (groups < 1 || (*kernel)[0] % groups || wanted > INT32_MAX || groups > INT32_MAX ||
      (channelAxis == 1 ? wanted * groups != *channels : (*kernel)[0] != *channels))
    return n.invalid("weights " + n.emit.describe(weights) + " in " + llvm::Twine(groups) +
                     " groups do not fit input " + n.emit.describe(x));
  Ints given = n.integers("kernel_shape", Ints(llvm::ArrayRef<int64_t>(*kernel).drop_front(2)));
  if (given != Ints(llvm::ArrayRef<int64_t>(*kernel).drop_front(2)))
    return n.invalid("attribute 'kernel_shape' differs from the weights " + n.emit.describe(weights));
  return groups;
}

/// Weights of a 1-D convolution as of a 2-D one.
static Tensor withHeight(Emitter &emit, const Tensor &weights) {
  if (weights.rank() != 3)
    return weights;
  return emit.reshape(weights, {weights.shape[0], weights.shape[1], emit.dim(1), weights.shape[2]});
}

/// Convolves and goes back to channels first; `spatial` are the output dims.
static llvm::Expected<Tensor> finish(Node &n, const Tensor &x, const Tensor &kernel, const Tensor &bias, Window window,
                                     int64_t groups, Dims spatial) {
  Emitter &emit = n.emit;
  Dims shape{x.shape[0], kernel.shape[0]};
  shape.append(spatial.begin(), spatial.end());
  VMPACK_CHECK(n.checkShape(shape));
  addHeight(emit, window);
  if (spatial.size() == 1)
    spatial.insert(spatial.begin(), emit.dim(1));
  Tensor weights = withHeight(emit, kernel);
  Tensor y = x.rank() == 5 ? convolveVolume(emit, x, weights, window, groups, spatial)
                           : convolveImage(emit, x, weights, window, groups, spatial);
  VMPACK_TRY(y, addBias(n, y, bias));
  return toChannelsFirst(emit, y, shape);
}

llvm::Expected<Tensor> vmpack::frontend::convolve(Node &n, const Tensor &x, const Tensor &weights, const Tensor &bias) {
  VMPACK_TRY(int64_t groups, checkOperands(n, x, weights, 1));
  Ints kernel(llvm::ArrayRef<int64_t>(*staticDims(weights.shape)).drop_front(2));
  VMPACK_TRY(Window window, readWindow(n, x, kernel, /*ceiling=*/false));
  VMPACK_TRY(Dims spatial, slide(n, x, window));
  Window image = window;
  addHeight(n.emit, image);
  return finish(n, padImage(n.emit, toChannelsLast(n.emit, x), image), weights, bias, window, groups, spatial);
}

static llvm::Error conv(Node &n) {
  VMPACK_TRY(Tensor y, convolve(n, n.input(0), n.input(1), n.hasInput(2) ? n.input(2) : Tensor()));
  n.output(y);
  return llvm::Error::success();
}

/// Output sizes of a transposed convolution, and from them the paddings.
static llvm::Expected<Dims> transposedShape(Node &n, const Tensor &x, Window &window) {
  size_t spatial = window.kernel.size();
  Ints extra = n.integers("output_padding", Ints(spatial, 0)), wanted = n.integers("output_shape");
  std::string mode = n.string("auto_pad", "NOTSET");
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (extra.size() != spatial || (!wanted.empty() && wanted.size() != spatial))
    return n.invalid("attributes 'output_padding' and 'output_shape' need one value a spatial dim");
  Dims result;
  for (size_t i = 0; i < spatial; ++i) {
    if (extra[i] < 0 || extra[i] > INT32_MAX)
      return n.invalid("attribute 'output_padding' has the value " + llvm::Twine(extra[i]));
    int64_t stride = window.strides[i], extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    Dim whole = n.emit.simplify((x.shape[2 + i] - 1) * stride + extent + extra[i]);
    if (same || !wanted.empty()) {
      Dim size = wanted.empty() ? n.emit.simplify(x.shape[2 + i] * stride) : n.emit.dim(wanted[i]);
      Dim total = n.emit.simplify(whole - size);
      Dim less = n.emit.simplify(total.floorDiv(2)), more = n.emit.simplify(total - less);
      window.padBefore[i] = mode == "SAME_UPPER" ? less : more;
      window.padAfter[i] = mode == "SAME_UPPER" ? more : less;
    }
    result.push_back(n.emit.simplify(whole - window.padBefore[i] - window.padAfter[i]));
    // What a convolution of stride 1 needs around the spread image.
    window.padBefore[i] = n.emit.simplify(n.emit.dim(extent - 1) - window.padBefore[i]);
    window.padAfter[i] = n.emit.simplify(n.emit.dim(extent - 1 + extra[i]) - window.padAfter[i]);
  }
  return result;
}

/// Negative paddings cut.
static llvm::Expected<Tensor> padOrCut(Node &n, const Tensor &x, Window &window) {
  Emitter &emit = n.emit;
  Dims offsets(x.rank(), emit.dim(0)), sizes = x.shape;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    for (Dim *pad : {&window.padBefore[i], &window.padAfter[i]}) {
      std::optional<int64_t> amount = constantDim(*pad);
      if (!amount)
        return n.unsupported("paddings that depend on symbolic dims are not supported; fix them with --dim");
      if (*amount >= 0)
        continue;
      sizes[1 + i] = emit.simplify(sizes[1 + i] + *amount);
      if (pad == &window.padBefore[i])
        offsets[1 + i] = emit.dim(-*amount);
      *pad = emit.dim(0);
    }
  }
  VMPACK_CHECK(n.checkShape(sizes));
  return padImage(emit, emit.slice(x, offsets, sizes, Ints(x.rank(), 1)), window);
}

static llvm::Error convTranspose(Node &n) {
  Emitter &emit = n.emit;
  const Tensor &x = n.input(0), &weights = n.input(1);
  VMPACK_TRY(int64_t groups, checkOperands(n, x, weights, 0));
  Ints kernel(llvm::ArrayRef<int64_t>(*staticDims(weights.shape)).drop_front(2));
  VMPACK_TRY(Window window, readWindow(n, x, kernel, /*ceiling=*/false));
  if (window.padBefore.size() != kernel.size())
    return n.invalid("the paddings do not fit the kernel");
  VMPACK_TRY(Dims spatial, transposedShape(n, x, window));
  VMPACK_CHECK(n.checkShape(spatial));
  // [C, F/groups, k…] → [F, C/groups, k…], flipped.
  int64_t channels = *constantDim(x.shape[1]), features = *constantDim(weights.shape[1]);
  Dims split{emit.dim(groups), emit.dim(channels / groups), emit.dim(features)},
      joint{emit.dim(groups * features), emit.dim(channels / groups)};
  Ints order{0, 2, 1}, flipped;
  for (size_t i = 0; i < kernel.size(); ++i) {
    split.push_back(emit.dim(kernel[i]));
    joint.push_back(emit.dim(kernel[i]));
    order.push_back(3 + i);
    flipped.push_back(2 + i);
  }
  Tensor turned = emit.reshape(emit.transpose(emit.reshape(weights, split), order), joint);
  turned = emit.flip(turned, flipped);
  Window image = window;
  addHeight(emit, image);
  Ints gaps(1, 1);
  gaps.append(image.strides.begin(), image.strides.end());
  gaps.push_back(1);
  VMPACK_TRY(Tensor padded, padOrCut(n, emit.spread(toChannelsLast(emit, x), gaps), image));
  window.strides.assign(kernel.size(), 1);
  VMPACK_TRY(Tensor y, finish(n, padded, turned, n.hasInput(2) ? n.input(2) : Tensor(), window, groups, spatial));
  n.output(y);
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::convOps() {
  static const Op ops[] = {
      {"Conv", 1, 2, 3, Types::Numeric, conv},
      {"ConvTranspose", 1, 2, 3, Types::Numeric, convTranspose},
  };
  return ops;
}
