// read_values: what an op has computed, as numbers on the host.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns Exec::read()'s bytes, which are T's; errors and lifetime are its own.
template <typename T>
Result<std::span<const T>> read_values(Exec& exec, const Tensor& tensor) {
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec.read(tensor));
  return std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

}  // namespace pagoda
