#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/rope/rope.h"

namespace pagoda::mlx {

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq) {
  const Shape shape = {positions.extent(0), 2, inv_freq.extent(0)};
  return mlx_exec(exec).build("rope_angles", DType::kFloat32, shape, [&] {
    const mx::array position = mx::astype(array_of(positions), mx::float32);
    const mx::array angle = mx::multiply(mx::expand_dims(position, 1), array_of(inv_freq));
    return mx::stack({mx::cos(angle), mx::sin(angle)}, 1);
  });
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  return mlx_exec(exec).build("rope", x.dtype(), x.shape(), [&] {
    const mx::array cos = array_of(angles.slice(1, 0, 1));  // [tokens, 1, pairs]
    const mx::array sin = array_of(angles.slice(1, 1, 2));
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
    const mx::array rotated_a = mx::subtract(mx::multiply(a, cos), mx::multiply(b, sin));
    const mx::array rotated_b = mx::add(mx::multiply(b, cos), mx::multiply(a, sin));
    const mx::array rotated = mx::stack({rotated_a, rotated_b}, axis);
    return mx::astype(mx::flatten(rotated, 2, 3), to_mlx(x.dtype()));
  });
}

}  // namespace pagoda::mlx
