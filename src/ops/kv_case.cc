#include "ops/kv_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/op_case.h"
#include "quant/kv_entry.h"

namespace pagoda {

bool fit(const KvFormats& formats, std::int64_t head_dim) {
  return fits(formats.keys, head_dim) && fits(formats.values, head_dim);
}

std::string name_of(const KvFormats& formats) {
  if (formats.keys == formats.values) return std::string(kv_format_name(formats.keys));
  return fmt::format("{} and {}", kv_format_name(formats.keys), kv_format_name(formats.values));
}

Result<KvView> allocate_kv_view(Exec& exec, const KvFormats& formats, const Shape& shape) {
  KvView view;
  PAGODA_ASSIGN_OR_RETURN(view.keys, allocate_kv_entries(exec, formats.keys, shape));
  PAGODA_ASSIGN_OR_RETURN(view.values, allocate_kv_entries(exec, formats.values, shape));
  return view;
}

KvEntries upload_kv_entries(Exec& exec, KvFormat format, std::span<const float> values,
                            const Shape& shape) {
  const KvFormatTraits traits = traits_of(format);
  if (!is_quantized(format)) {
    return {
        .format = format, .elements = upload_as(exec, traits.dtype, values, shape), .scales = {}};
  }
  const std::int64_t block_size = shape[1], heads = shape[2], head_dim = shape[3];
  const std::int64_t entry_bytes = kv_entry_bytes(format, head_dim);
  std::vector<std::byte> codes(shape.num_elements() / head_dim * entry_bytes);
  std::vector<bf16> scales(shape[0] * heads * traits.num_scales * block_size);
  std::vector<float> entry(head_dim);
  for (std::int64_t i = 0; i < shape.num_elements() / head_dim; ++i) {
    const std::int64_t slot = i / heads, head = i % heads;
    std::copy_n(values.begin() + i * head_dim, head_dim, entry.begin());
    bf16 found[2] = {};
    encode_kv_entry(format, entry, codes.data() + i * entry_bytes, found);
    for (std::int64_t s = 0; s < traits.num_scales; ++s) {
      const std::int64_t run = (slot / block_size * heads + head) * traits.num_scales + s;
      scales[run * block_size + slot % block_size] = found[s];
    }
  }
  return {.format = format,
          .elements = exec.upload(traits.dtype, {shape[0], block_size, heads, entry_bytes}, codes),
          .scales = exec.upload<bf16>(scales, {shape[0], heads, traits.num_scales, block_size})};
}

HostBatch write_batch(std::span<const int> positions, std::vector<std::int32_t> slots) {
  const auto num_tokens = static_cast<std::int32_t>(positions.size());
  HostBatch host;
  host.token_ids.assign(positions.size(), 0);
  host.positions.assign(positions.begin(), positions.end());
  host.slot_mapping = std::move(slots);
  host.query_start = {0, num_tokens};
  host.context_lens = {num_tokens};
  host.max_blocks = 1;
  host.block_tables = {0};
  return host;
}

std::vector<Tensor> arrays_of(const KvView& view) {
  const KvArrays arrays = view.arrays();
  return {arrays.begin(), arrays.end()};
}

}  // namespace pagoda
