// read_values: reads an op's result as numbers on the host.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "tensor/exec.h"

namespace pagoda {

// Returns bytes from Exec::read() or read_packet() as values.
template <typename T>
std::span<const T> values_in(std::span<const std::byte> bytes) {
  return std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

// Returns the bytes of Exec::read() as values of T. Errors and lifetime are those of Exec::read().
template <typename T>
Result<std::span<const T>> read_values(Exec& exec, const Tensor& tensor) {
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec.read(tensor));
  return values_in<T>(bytes);
}

}  // namespace pagoda
