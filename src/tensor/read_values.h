// read_values: what an op has computed, as numbers on the host.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns the values whose bytes Exec::read() or read_packet() has given.
template <typename T>
std::span<const T> values_in(std::span<const std::byte> bytes) {
  return std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

// Returns Exec::read()'s bytes, which are T's; errors and lifetime are its own.
template <typename T>
Result<std::span<const T>> read_values(Exec& exec, const Tensor& tensor) {
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec.read(tensor));
  return values_in<T>(bytes);
}

}  // namespace pagoda
