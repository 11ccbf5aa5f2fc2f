// The arithmetic of a GPU's matrix units (simdgroup_matrix), found out on the GPU itself.
//
// No document says in which order they add the eight products of an element, and an answer must not
// depend on the company: a row's bits by matrix units, many at a time, must be those of a row alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

enum class MatrixUnits : std::uint8_t {
  kAscendingChain,  // fma after fma over ascending k: lanes and matrix units are one arithmetic
  kOtherOrder,      // one order at all places: matrix units take a single row too
  kUnusable,        // the order depends on the place: lanes take all rows
};

// Returns the verdict in words, for `pagoda info`.
std::string_view to_string(MatrixUnits units);

// Returns what was found on this Exec's GPU.
MatrixUnits matrix_units(const Exec& exec);

// Multiplies matrices of random, cancelling, huge, tiny and infinite numbers and compares every
// element with the chain. kUnavailable where the GPU's own chain is not the host's. REQUIRES: an Exec of the mlx backend that uses Metal. Takes 1 ms.
Result<MatrixUnits> find_matrix_units(Exec& exec);

}  // namespace pagoda::mlx
