// KvCopyBlocks on Apple GPUs. Entries are copied as words of their size, so one kernel serves
// float32 and one both 16-bit types.
#include <mlx/backend/metal/device.h>

#include <algorithm>
#include <string>

#include "ops/kv_copy_blocks/kv_copy_blocks_mlx.h"

namespace pagoda::mlx {
namespace {

namespace mx = ::mlx::core;

constexpr const char* kSource = R"(
#include <metal_stdlib>
using namespace metal;

struct Extents {
  int entry_width;
  int block_size;
};

// One thread an element: x within the entry, y the token of the block, z the copy.
template <typename Word>
[[kernel]] void pagoda_kv_copy_blocks(device const int* copies [[buffer(0)]],
                                      device Word* cache [[buffer(1)]],
                                      constant Extents& extents [[buffer(2)]],
                                      uint3 place [[thread_position_in_grid]]) {
  device const int* copy = copies + 3 * place.z;
  if (int(place.y) >= copy[2]) return;
  const size_t offset = size_t(place.y) * extents.entry_width + place.x;
  const size_t block_width = size_t(extents.block_size) * extents.entry_width;
  cache[copy[1] * block_width + offset] = cache[copy[0] * block_width + offset];
}

template [[host_name("pagoda_kv_copy_blocks_2")]] [[kernel]] decltype(pagoda_kv_copy_blocks<ushort>) pagoda_kv_copy_blocks<ushort>;
template [[host_name("pagoda_kv_copy_blocks_4")]] [[kernel]] decltype(pagoda_kv_copy_blocks<uint>) pagoda_kv_copy_blocks<uint>;
)";

struct Extents {
  std::int32_t entry_width;
  std::int32_t block_size;
};

}  // namespace

void KvCopyBlocks::eval_gpu(const std::vector<mx::array>& inputs, mx::array& output) {
  const mx::array& cache = inputs[0];
  const mx::array& copies = inputs[1];
  output.copy_shared_buffer(cache);
  const int entry_width = cache.shape(2) * cache.shape(3);
  const int block_size = cache.shape(1);
  if (copies.shape(0) == 0) return;

  auto& device = mx::metal::device(stream().device);
  auto* library = device.get_library("pagoda_kv_copy_blocks", [] { return std::string(kSource); });
  auto* kernel =
      device.get_kernel("pagoda_kv_copy_blocks_" + std::to_string(cache.itemsize()), library);
  auto& encoder = mx::metal::get_command_encoder(stream());
  encoder.set_compute_pipeline_state(kernel);
  encoder.set_input_array(copies, 0);
  encoder.set_output_array(output, 1);
  encoder.set_bytes(Extents{entry_width, block_size}, 2);
  const auto group = std::min<std::size_t>(entry_width, kernel->maxTotalThreadsPerThreadgroup());
  encoder.dispatch_threads(MTL::Size(entry_width, block_size, copies.shape(0)),
                           MTL::Size(group, 1, 1));
}

}  // namespace pagoda::mlx
