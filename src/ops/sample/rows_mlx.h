// Code that the mlx bodies of sampling share: token_weight.h on arrays, bit for bit.
//
// Each operation is a kernel of its own, so that nothing is fused or reordered; 64-bit integers
// take the place of the doubles that Metal lacks.
#pragma once

#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {

// Returns ids [rows] int32; where a row of x [rows, vocab] has no token to choose, the fault's
// number (argmax.h).
mx::array or_fault(const mx::array& ids, const mx::array& x);

// Computes token_weight() of each of x [rows, n]: [rows, n] int64. max and inverse_temperature:
// [rows, 1] float32.
mx::array weigh(const mx::array& x, const mx::array& max, const mx::array& inverse_temperature);

// Computes share_of(), elementwise on int64. The fraction is high * 2^31 + low, both int64 in [0,
// 2^31].
mx::array share_of(const mx::array& total, const mx::array& high, const mx::array& low);

}  // namespace pagoda::mlx
