#include "ops/check_kv_view.h"

#include <fmt/format.h>

namespace pagoda {
namespace {

void check_entries(std::string_view op, const KvView& view, const KvEntries& entries) {
  const KvFormatTraits format = traits_of(entries.format);
  const Shape& shape = entries.elements.shape();
  const Shape expected = {view.num_blocks(), view.block_size(), view.num_kv_heads(),
                          kv_entry_elements(entries.format, view.head_dim())};
  PAGODA_CHECK(shape == expected && entries.elements.is_contiguous() &&
                   entries.elements.dtype() == format.dtype,
               fmt::format("[{}] view: expected {} of {} in a row, got {}", op, to_string(expected),
                           format.name, to_string(shape)));
  const Shape scales = {view.num_blocks(), view.num_kv_heads(), format.num_scales,
                        view.block_size()};
  PAGODA_CHECK(
      format.num_scales == 0
          ? !entries.scales.defined()
          : entries.scales.defined() && entries.scales.dtype() == DType::kBFloat16 &&
                entries.scales.shape() == scales && entries.scales.is_contiguous(),
      fmt::format("[{}] view: expected {} scales of {}", op, to_string(scales), format.name));
}

}  // namespace

void check_kv_view(std::string_view op, const KvView& view) {
  check_entries(op, view, view.keys);
  check_entries(op, view, view.values);
}

}  // namespace pagoda
