// The arithmetic of a GPU's matrix units (simdgroup_matrix), found by a test on the GPU itself.
//
// No document says in which order they add the eight products of an element. But a row's result
// must not depend on other rows (batch invariance): matrix units, which compute many rows at a
// time, must give a row the same bits as it gets alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda::gpu {

enum class MatrixUnits : std::uint8_t {
  kAscendingChain,  // fma after fma over ascending k, as in lanes: both give the same bits
  kOtherOrder,      // another order, the same for all elements: matrix units compute all rows
  kUnusable,        // the order depends on the element: lanes compute all rows
};

// Returns the verdict in words, for `pagoda info`.
std::string_view to_string(MatrixUnits units);

// Returns the arithmetic that was found on this GpuExec's GPU.
MatrixUnits matrix_units(const Exec& exec);

// Multiplies matrices of random, cancelling, huge, tiny and infinite numbers and compares every
// element with a chain of fma. kUnavailable if the GPU's own chain differs from the host's.
// REQUIRES: a GpuExec that uses kernels. Takes 1 ms.
Result<MatrixUnits> find_matrix_units(Exec& exec);

}  // namespace pagoda::gpu
