// OwnedBytes: memory for HostTensors whose bytes are not in a file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "quant/host_tensor.h"

namespace pagoda {

struct OwnedBytes final : public HostStorage {
  explicit OwnedBytes(std::size_t size) : bytes(size) {}
  explicit OwnedBytes(std::span<const std::byte> source) : bytes(source.begin(), source.end()) {}

  std::vector<std::byte> bytes;
};

}  // namespace pagoda
