#include "ops/apply_token_mask/apply_token_mask.h"

#include <mlx/ops.h>

#include <limits>

#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {

Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  return mlx_exec(exec).build("apply_token_mask", logits.dtype(), logits.shape(), [&] {
    const mx::array x = array_of(logits);
    const mx::array mask_of = mx::expand_dims(array_of(masks.mask_of), 1);
    const mx::array zero = mx::array(0);
    const mx::array words = mx::view(array_of(masks.words), mx::uint32);
    const mx::array of_row =
        mx::take(words, mx::squeeze(mx::maximum(mask_of, zero), 1), 0);  // [rows, words]
    const mx::array bits = mx::bitwise_and(
        mx::right_shift(mx::expand_dims(of_row, 2), mx::arange(32, mx::uint32)), mx::array(1u));
    const mx::array is_set =
        mx::slice(mx::flatten(mx::astype(bits, mx::bool_), 1, 2), {0, 0}, x.shape());
    const mx::array is_allowed = mx::logical_or(is_set, mx::less(mask_of, zero));
    const mx::array banned = mx::array(-std::numeric_limits<float>::infinity(), x.dtype());
    return mx::where(is_allowed, x, banned);
  });
}

}  // namespace pagoda::mlx
