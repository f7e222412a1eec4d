//===- Window.h - what convolutions and pools share -----------------------------------------------------===//
#ifndef VMPACK_FRONTEND_OPS_WINDOW_H
#define VMPACK_FRONTEND_OPS_WINDOW_H

#include "packager/frontend/Node.h"

namespace vmpack::frontend {

/// Reads strides, dilations, pads and auto_pad of a window of `kernel` over the spatial dims of x (N, C, spatial…).
/// With `ceiling` the paddings behind grow so that the last, partial window is whole.
llvm::Expected<Window> readWindow(Node &node, const Tensor &x, llvm::ArrayRef<int64_t> kernel, bool ceiling);
/// The spatial output dims of a window over x.
llvm::Expected<Dims> slide(Node &node, const Tensor &x, const Window &window);

/// N, C, spatial… → N, spatial…, C with at least two spatial dims (a 1-D one gets H = 1, `window` too).
Tensor toChannelsLast(Emitter &emit, const Tensor &x);
void addHeight(Emitter &emit, Window &window);
/// The way back to `shape`.
Tensor toChannelsFirst(Emitter &emit, const Tensor &y, llvm::ArrayRef<Dim> shape);

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_OPS_WINDOW_H
