//===- Winograd.cpp - 3x3 convolutions with fewer multiplications ---------------------------------------===//
//
//   %y = vmpk.conv %x, %panels, %bias, %empty {kernel = 3, 3, strides = 1, 1, …}
// becomes
//   %y = vmpk.winograd %x, %transformed, %bias, %empty
//
// where that is expected to pay. The weights are transformed here, in double precision: U = G g G^T (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015). They grow by 16/9 or 36/9, so small images, which use
// each of them few times, stay as they are.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/lowering/Winograd.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

/// The matrix G of F(tile x tile, 3 x 3): tile + 2 rows of 3.
ArrayRef<double> filterTransform(int64_t tile) {
  static const double two[] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
  static const double four[] = {1.0 / 4,  0,        0,       -1.0 / 6, -1.0 / 6,  -1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6,
                                1.0 / 24, 1.0 / 12, 1.0 / 6, 1.0 / 24, -1.0 / 12, 1.0 / 6,  0,        0,       1};
  return tile == 2 ? ArrayRef(two) : ArrayRef(four);
}

/// What a convolution costs, in multiply-adds. A weight is used once for each block of pixels and comes from memory:
/// that takes the time of about 16 multiply-adds; a float that goes to the second-level cache and back takes that of 8.
struct Cost {
  double weights, products, traffic;
  double total() const { return 16 * weights + products + 8 * traffic; }
};

Cost directCost(int64_t pixels, int64_t c, int64_t n) { return {9.0 * c * n, 9.0 * pixels * c * n, 0}; }

Cost winogradCost(int64_t tile, int64_t height, int64_t width, int64_t c, int64_t n) {
  double positions = (tile + 2) * (tile + 2), tiles = llvm::divideCeil(height, tile) * llvm::divideCeil(width, tile);
  return {positions * c * n, positions * tiles * c * n, positions * tiles * (c + n)};
}

/// The tile for a convolution, or 0 for none. It has to be a good deal cheaper, as it makes the artifact larger.
int64_t chooseTile(int64_t height, int64_t width, int64_t c, int64_t n) {
  int64_t best = 0;
  double least = 0.75 * directCost(height * width, c, n).total();
  for (int64_t tile : {2, 4}) {
    double cost = winogradCost(tile, height, width, c, n).total();
    if (cost < least) {
      least = cost;
      best = tile;
    }
  }
  return best;
}

/// Panels of 9 * c rows to (tile + 2)^2 positions of panels of c rows.
std::vector<float> transformWeights(ArrayRef<float> panels, int64_t count, int64_t c, int64_t tile) {
  ArrayRef<double> g = filterTransform(tile);
  const int64_t side = tile + 2, positions = side * side, panelFloats = c * panelWidth;
  std::vector<float> out(positions * count * panelFloats);
  for (int64_t panel = 0; panel < count; ++panel)
    for (int64_t index = 0; index < panelFloats; ++index) {
      const float *filter = panels.data() + panel * 9 * panelFloats + index; // the tap t is at t * panelFloats
      double half[6][3];
      for (int64_t row = 0; row < side; ++row)
        for (int64_t kx = 0; kx < 3; ++kx)
          half[row][kx] = g[row * 3] * filter[kx * panelFloats] + g[row * 3 + 1] * filter[(3 + kx) * panelFloats] +
                          g[row * 3 + 2] * filter[(6 + kx) * panelFloats];
      for (int64_t row = 0; row < side; ++row)
        for (int64_t column = 0; column < side; ++column) {
          const double *across = g.data() + column * 3;
          out[((row * side + column) * count + panel) * panelFloats + index] =
              half[row][0] * across[0] + half[row][1] * across[1] + half[row][2] * across[2];
        }
    }
  return out;
}

struct WinogradPattern : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    auto isAll = [](ArrayRef<int64_t> pair, int64_t value) { return pair[0] == value && pair[1] == value; };
    auto x = cast<RankedTensorType>(op.getX().getType()), out = cast<RankedTensorType>(op.getOut().getType());
    if (!isAll(op.getKernel(), 3) || !isAll(op.getStrides(), 1) || !isAll(op.getDilations(), 1) ||
        llvm::any_of(out.getShape().drop_front(), ShapedType::isDynamic) || x.isDynamicDim(3))
      return failure();
    int64_t c = x.getDimSize(3), n = out.getDimSize(3);
    if (c < panelWidth || n < panelWidth)
      return failure();
    int64_t tile = chooseTile(out.getDimSize(1), out.getDimSize(2), c, n);
    if (!tile || !constantOf(op.getWeights()))
      return failure();
    auto panels = constantElements<float>(op.getWeights());
    if (!panels)
      return failure();
    Location loc = op.getLoc();
    int64_t count = llvm::divideCeil(n, panelWidth);
    Value weights = createFloatConstant(rewriter, loc, {(tile + 2) * (tile + 2), count, c, panelWidth},
                                        transformWeights(*panels, count, c, tile));
    Value bias = op.getBias();
    if (!bias)
      bias = createFloatConstant(rewriter, loc, {n}, std::vector<float>(n));
    rewriter.replaceOpWithNewOp<WinogradOp>(op, op->getResultTypes(), op.getX(), weights, bias, Value(), op.getOut(),
                                            op.getPads(), op.getLow(), op.getHigh());
    return success();
  }
};

} // namespace

void addWinogradPatterns(RewritePatternSet &patterns) { patterns.add<WinogradPattern>(patterns.getContext()); }

} // namespace vmpack::lowering
