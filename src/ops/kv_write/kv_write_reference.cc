#include "ops/kv_write/kv_write.h"
#include "quant/kv_entry.h"

namespace pagoda::reference {
namespace {

// A token's slot: its block, and its offset in the block.
struct Slot {
  std::int64_t block;
  std::int64_t offset;
};

template <typename T>
void write_values(std::span<const float> entry, T* to) {
  for (std::size_t d = 0; d < entry.size(); ++d) to[d] = from_float<T>(entry[d]);
}

// Stores the entry's codes and scales; the entry is clobbered.
void write_codes(std::span<float> entry, const KvEntries& to, std::int64_t at, bf16* scales) {
  bf16 found[2] = {};
  encode_kv_entry(to.format, entry, to.elements.first_byte() + at, found);
  for (std::int64_t i = 0; i < to.scales.extent(2); ++i)
    scales[i * to.elements.extent(1)] = found[i];
}

// Writes an entry [head_dim]; the entry is clobbered.
void write_entry(std::span<float> entry, const KvEntries& to, const Slot& slot, std::int64_t head) {
  const std::int64_t block_size = to.elements.extent(1), heads = to.elements.extent(2);
  const std::int64_t at =
      ((slot.block * block_size + slot.offset) * heads + head) * to.elements.extent(3);
  switch (to.format) {
    case KvFormat::kFloat32:
      return write_values(entry, to.elements.data<float>() + at);
    case KvFormat::kBFloat16:
      return write_values(entry, to.elements.data<bf16>() + at);
    case KvFormat::kFloat16:
      return write_values(entry, to.elements.data<f16>() + at);
    case KvFormat::kInt8:
    case KvFormat::kInt4:
      return write_codes(entry, to, at,
                         to.scales.data<bf16>() +
                             (slot.block * heads + head) * to.scales.extent(2) * block_size +
                             slot.offset);
  }
}

void write(Exec& exec, const Tensor& x, const KvEntries& to, const std::int32_t* slots) {
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2);
  const std::int64_t block_size = to.elements.extent(1);
  const Tensor memory = exec.allocate(DType::kFloat32, {head_dim});
  const std::span<float> entry = memory.span<float>();
  for (std::int64_t t = 0; t < x.extent(0); ++t) {
    if (slots[t] < 0) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      const float* from = x.data<float>() + t * x.stride(0) + h * x.stride(1);
      for (std::int64_t d = 0; d < head_dim; ++d) entry[d] = from[d];
      write_entry(entry, to, {slots[t] / block_size, slots[t] % block_size}, h);
    }
  }
}

}  // namespace

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const std::int32_t* slots = batch.slot_mapping.data<std::int32_t>();
  write(exec, k, view.keys, slots);
  write(exec, v, view.values, slots);
  return view;
}

}  // namespace pagoda::reference
