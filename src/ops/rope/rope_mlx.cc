#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/rope/rope.h"

namespace pagoda::mlx {
namespace {

// The angle of every token and pair: [tokens, 1, head_dim / 2]; its sine or cosine serves all
// layers, for q and k.
mx::array angles(const Tensor& positions, const Tensor& inv_freq) {
  const mx::array position = mx::astype(array_of(positions), mx::float32);
  return mx::multiply(mx::expand_dims(position, {1, 2}), array_of(inv_freq));
}

enum Part { kCos, kSin };

mx::array trigonometric(MlxExec& exec, Part part, const Tensor& positions, const Tensor& inv_freq) {
  return exec.once_a_step({positions, inv_freq}, {part}, [&] {
    return part == kCos ? mx::cos(angles(positions, inv_freq))
                        : mx::sin(angles(positions, inv_freq));
  });
}

}  // namespace

Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions, const Tensor& inv_freq,
            const RopeArgs& args) {
  return mlx_exec(exec).build("rope", x.dtype(), x.shape(), [&] {
    const mx::array cos = trigonometric(mlx_exec(exec), kCos, positions, inv_freq);
    const mx::array sin = trigonometric(mlx_exec(exec), kSin, positions, inv_freq);
    const auto pairs = static_cast<int>(x.extent(2) / 2);
    const bool halves = args.style == RopeStyle::kHalves;
    // [tokens, heads, 2, pairs] or [tokens, heads, pairs, 2]; a pair's elements are apart along
    // `axis`.
    const int axis = halves ? 2 : 3;
    const mx::array split = mx::unflatten(mx::astype(array_of(x), mx::float32), 2,
                                          halves ? mx::Shape{2, pairs} : mx::Shape{pairs, 2});
    const auto pair = mx::split(split, 2, axis);
    const mx::array a = mx::squeeze(pair[0], axis);
    const mx::array b = mx::squeeze(pair[1], axis);
    const mx::array turned_a = mx::subtract(mx::multiply(a, cos), mx::multiply(b, sin));
    const mx::array turned_b = mx::add(mx::multiply(b, cos), mx::multiply(a, sin));
    const mx::array turned = mx::stack({turned_a, turned_b}, axis);
    return mx::astype(mx::flatten(turned, 2, 3), to_mlx(x.dtype()));
  });
}

}  // namespace pagoda::mlx
