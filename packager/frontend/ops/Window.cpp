#include "packager/frontend/ops/Window.h"

using namespace vmpack::frontend;

static llvm::Error checkWindow(Node &n, const Window &window, size_t spatial) {
  auto check = [&](llvm::StringRef what, llvm::ArrayRef<int64_t> values, int64_t minimum) -> llvm::Error {
    if (values.size() != spatial)
      return n.invalid("attribute '" + what + "' has " + llvm::Twine(values.size()) + " values when it should have " +
                       llvm::Twine(spatial));
    for (int64_t value : values)
      if (value < minimum || value > INT32_MAX)
        return n.invalid("attribute '" + what + "' has the value " + llvm::Twine(value));
    return llvm::Error::success();
  };
  VMPACK_CHECK(check("kernel_shape", window.kernel, 1));
  VMPACK_CHECK(check("strides", window.strides, 1));
  return check("dilations", window.dilations, 1);
}

/// SAME_UPPER and SAME_LOWER: as many outputs as strides fit.
static void padSame(Emitter &emit, const Tensor &x, Window &window, bool upper) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    Dim size = x.shape[2 + i];
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1, stride = window.strides[i];
    Dim total;
    if (stride == 1) {
      total = emit.dim(extent - 1);
    } else if (std::optional<int64_t> fixed = constantDim(size)) {
      int64_t outputs = (*fixed + stride - 1) / stride;
      total = emit.dim(std::max<int64_t>(0, (outputs - 1) * stride + extent - *fixed));
    } else { // a symbolic size: never negative as long as the window is no smaller than its stride
      total = emit.simplify((size.ceilDiv(stride) - 1) * stride + extent - size);
    }
    Dim less = emit.simplify(total.floorDiv(2)), more = emit.simplify(total - less);
    window.padBefore.push_back(upper ? less : more);
    window.padAfter.push_back(upper ? more : less);
  }
}

llvm::Expected<Window> vmpack::frontend::readWindow(Node &n, const Tensor &x, llvm::ArrayRef<int64_t> kernel,
                                                    bool ceiling) {
  size_t spatial = x.rank() - 2;
  Window window{
      Ints(kernel), n.integers("strides", Ints(spatial, 1)), n.integers("dilations", Ints(spatial, 1)), {}, {}};
  VMPACK_CHECK(checkWindow(n, window, spatial));
  std::string mode = n.string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    padSame(n.emit, x, window, mode == "SAME_UPPER");
  } else if (mode == "VALID") {
    window.padBefore = window.padAfter = Dims(spatial, n.emit.dim(0));
  } else if (mode == "NOTSET" || mode.empty()) {
    Ints pads = n.integers("pads", Ints(2 * spatial, 0));
    if (pads.size() != 2 * spatial)
      return n.invalid("attribute 'pads' has " + llvm::Twine(pads.size()) + " values when it should have " +
                       llvm::Twine(2 * spatial));
    for (int64_t pad : pads)
      if (pad < 0 || pad > INT32_MAX)
        return n.invalid("attribute 'pads' has the value " + llvm::Twine(pad));
    window.padBefore = n.emit.dims(llvm::ArrayRef<int64_t>(pads).take_front(spatial));
    window.padAfter = n.emit.dims(llvm::ArrayRef<int64_t>(pads).drop_front(spatial));
  } else {
    return n.invalid("attribute 'auto_pad' is '" + mode + "'");
  }
  if (!ceiling)
    return window;
  for (size_t i = 0; i < spatial; ++i) {
    std::optional<int64_t> size = constantDim(x.shape[2 + i]);
    if (!size)
      return n.unsupported("ceil_mode over a symbolic dim is not supported; fix it with --dim");
    int64_t before = *constantDim(window.padBefore[i]), after = *constantDim(window.padAfter[i]);
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1, stride = window.strides[i];
    int64_t room = *size + before + after - extent;
    if (room < 0)
      continue; // reported by slide
    int64_t outputs = (room + stride - 1) / stride + 1;
    if ((outputs - 1) * stride >= *size + before) // a window that starts behind the input does not count
      --outputs;
    window.padAfter[i] = n.emit.dim(std::max(after, (outputs - 1) * stride + extent - *size - before));
  }
  return window;
}

llvm::Expected<Dims> vmpack::frontend::slide(Node &n, const Tensor &x, const Window &window) {
  Dims result;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    Dim room = n.emit.simplify(x.shape[2 + i] + window.padBefore[i] + window.padAfter[i] - extent);
    if (std::optional<int64_t> fixed = constantDim(room); fixed && *fixed < 0)
      return n.invalid("the window of " + llvm::Twine(extent) + " is larger than the padded input of shape " +
                       n.emit.describe(x));
    result.push_back(n.emit.simplify(room.floorDiv(window.strides[i]) + 1));
  }
  return result;
}

Tensor vmpack::frontend::toChannelsLast(Emitter &emit, const Tensor &x) {
  Tensor image = x;
  if (x.rank() == 3)
    image = emit.reshape(x, {x.shape[0], x.shape[1], emit.dim(1), x.shape[2]});
  Ints order{0};
  for (int64_t axis = 2; axis < image.rank(); ++axis)
    order.push_back(axis);
  order.push_back(1);
  return emit.transpose(image, order);
}

void vmpack::frontend::addHeight(Emitter &emit, Window &window) {
  if (window.kernel.size() != 1)
    return;
  window.kernel.insert(window.kernel.begin(), 1);
  window.strides.insert(window.strides.begin(), 1);
  window.dilations.insert(window.dilations.begin(), 1);
  window.padBefore.insert(window.padBefore.begin(), emit.dim(0));
  window.padAfter.insert(window.padAfter.begin(), emit.dim(0));
}

Tensor vmpack::frontend::toChannelsFirst(Emitter &emit, const Tensor &y, llvm::ArrayRef<Dim> shape) {
  Ints order{0, y.rank() - 1};
  for (int64_t axis = 1; axis < y.rank() - 1; ++axis)
    order.push_back(axis);
  return emit.reshape(emit.transpose(y, order), shape);
}
