#include "kv/block_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace pagoda {

BlockMemory::BlockMemory(std::vector<Array> arrays) : arrays_(std::move(arrays)) {
  for (const Array& array : arrays_) num_bytes_ += array.block_bytes;
}

Result<BlockMemory> BlockMemory::of(Exec& exec, const KvStore& store) {
  std::vector<Array> arrays;
  const auto has = [&](const std::byte* first) {
    return std::ranges::find(arrays, first, &Array::first) != arrays.end();
  };
  for (const KvView& view : store.views()) {
    for (const Tensor& array : view.arrays()) {
      std::byte* const first = exec.host_address(array);
      if (first == nullptr) {
        return unsupported("[kv cache] prefix-cache-dir: expected cpu, mlx or reference, got {}",
                           backend_name(exec.backend()));
      }
      if (has(first)) continue;  // layers of several forms share this memory
      const auto block_elements =
          static_cast<std::size_t>(array.num_elements() / store.num_blocks());
      arrays.push_back({.first = first, .block_bytes = block_elements * dtype_size(array.dtype())});
    }
  }
  return BlockMemory(std::move(arrays));
}

void BlockMemory::read(int block_id, std::span<std::byte> bytes) const {
  PAGODA_CHECK(bytes.size() == num_bytes_, "[kv] a block is read into other bytes than its own");
  for (const auto& [first, block_bytes] : arrays_) {
    std::memcpy(bytes.data(), first + block_bytes * block_id, block_bytes);
    bytes = bytes.subspan(block_bytes);
  }
}

void BlockMemory::write(int block_id, std::span<const std::byte> bytes) const {
  PAGODA_CHECK(bytes.size() == num_bytes_, "[kv] a block is written from other bytes than its own");
  for (const auto& [first, block_bytes] : arrays_) {
    std::memcpy(first + block_bytes * block_id, bytes.data(), block_bytes);
    bytes = bytes.subspan(block_bytes);
  }
}

}  // namespace pagoda
