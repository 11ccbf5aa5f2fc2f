#include "ops/kv_write/kv_write_mlx.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/ops.h>

#include <cstring>
#include <stdexcept>

#include "backend/mlx/mlx_exec.h"
#include "ops/kv_write/kv_write.h"

namespace pagoda::mlx {
namespace {

struct RowCopy {
  char* cache;
  const char* rows;
  const std::int32_t* slots;
  std::int64_t num_tokens;
  std::int64_t num_slots;
  std::size_t row_bytes;
};

void copy_rows(const RowCopy& copy) {
  for (std::int64_t t = 0; t < copy.num_tokens; ++t) {
    const std::int32_t slot = copy.slots[t];
    if (slot < 0) continue;
    if (slot >= copy.num_slots) {
      throw std::out_of_range(
          fmt::format("[kv_write] expected a slot below {}, got {}", copy.num_slots, slot));
    }
    std::memcpy(copy.cache + slot * copy.row_bytes, copy.rows + t * copy.row_bytes, copy.row_bytes);
  }
}

}  // namespace

mx::array write_in_place(const mx::array& cache, const mx::array& rows, const mx::array& slots) {
  auto primitive = std::make_shared<KvWrite>(mx::default_stream(mx::default_device()));
  return mx::array(cache.shape(), cache.dtype(), std::move(primitive), {cache, rows, slots});
}

void KvWrite::eval_cpu(const std::vector<mx::array>& inputs, mx::array& output) {
  const mx::array& cache = inputs[0];
  const mx::array& rows = inputs[1];
  const mx::array& slots = inputs[2];
  if (!cache.flags().row_contiguous || !rows.flags().row_contiguous ||
      !slots.flags().row_contiguous) {
    throw std::invalid_argument("[kv_write] expected contiguous arrays");
  }
  output.copy_shared_buffer(cache);
  const std::size_t row_bytes =
      static_cast<std::size_t>(cache.shape(2)) * cache.shape(3) * cache.itemsize();
  const RowCopy copy{.cache = output.data<char>(),
                     .rows = rows.data<char>(),
                     .slots = slots.data<std::int32_t>(),
                     .num_tokens = slots.shape(0),
                     .num_slots = std::int64_t{cache.shape(0)} * cache.shape(1),
                     .row_bytes = row_bytes};
  auto& encoder = mx::cpu::get_command_encoder(stream());
  encoder.set_input_array(rows);
  encoder.set_input_array(slots);
  encoder.set_output_array(output);
  encoder.dispatch([copy] { copy_rows(copy); });
}

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const auto written = [&](const Tensor& cache, const Tensor& rows) {
    return mlx_exec(exec).build("kv_write", cache.dtype(), cache.shape(), [&] {
      const mx::array stored = mx::contiguous(mx::astype(array_of(rows), to_mlx(cache.dtype())));
      return write_in_place(array_of(cache), stored, array_of(batch.slot_mapping));
    });
  };
  return {.keys = written(view.keys, k), .values = written(view.values, v)};
}

}  // namespace pagoda::mlx
