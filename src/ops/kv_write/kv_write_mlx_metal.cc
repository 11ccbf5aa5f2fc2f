// KvWrite on Apple GPUs. Entries are copied as words of their size, so one kernel serves float32
// and one both 16-bit types.
#include <mlx/backend/metal/device.h>

#include <algorithm>
#include <string>

#include "ops/kv_write/kv_write_mlx.h"

namespace pagoda::mlx {
namespace {

namespace mx = ::mlx::core;

constexpr const char* kSource = R"(
#include <metal_stdlib>
using namespace metal;

struct Extents {
  int row_width;
  int num_slots;
};

// One thread an element of a row: x within the row, y the token.
template <typename Word>
[[kernel]] void pagoda_kv_write(device const Word* rows [[buffer(0)]],
                                device const int* slots [[buffer(1)]],
                                device Word* cache [[buffer(2)]],
                                constant Extents& extents [[buffer(3)]],
                                uint2 place [[thread_position_in_grid]]) {
  const int slot = slots[place.y];
  if (slot < 0 || slot >= extents.num_slots) return;
  cache[size_t(slot) * extents.row_width + place.x] = rows[size_t(place.y) * extents.row_width + place.x];
}

template [[host_name("pagoda_kv_write_2")]] [[kernel]] decltype(pagoda_kv_write<ushort>) pagoda_kv_write<ushort>;
template [[host_name("pagoda_kv_write_4")]] [[kernel]] decltype(pagoda_kv_write<uint>) pagoda_kv_write<uint>;
)";

struct Extents {
  std::int32_t row_width;
  std::int32_t num_slots;
};

}  // namespace

void KvWrite::eval_gpu(const std::vector<mx::array>& inputs, mx::array& output) {
  const mx::array& cache = inputs[0];
  const mx::array& rows = inputs[1];
  const mx::array& slots = inputs[2];
  output.copy_shared_buffer(cache);
  const int num_tokens = slots.shape(0);
  const int row_width = cache.shape(2) * cache.shape(3);
  if (num_tokens == 0) return;

  auto& device = mx::metal::device(stream().device);
  auto* library = device.get_library("pagoda_kv_write", [] { return std::string(kSource); });
  auto* kernel = device.get_kernel("pagoda_kv_write_" + std::to_string(cache.itemsize()), library);
  auto& encoder = mx::metal::get_command_encoder(stream());
  encoder.set_compute_pipeline_state(kernel);
  encoder.set_input_array(rows, 0);
  encoder.set_input_array(slots, 1);
  encoder.set_output_array(output, 2);
  encoder.set_bytes(Extents{row_width, cache.shape(0) * cache.shape(1)}, 3);
  const auto group = std::min<std::size_t>(row_width, kernel->maxTotalThreadsPerThreadgroup());
  encoder.dispatch_threads(MTL::Size(row_width, num_tokens, 1), MTL::Size(group, 1, 1));
}

}  // namespace pagoda::mlx
