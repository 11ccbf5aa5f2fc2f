#include "batch/kv_view.h"

namespace pagoda {

Result<KvEntries> allocate_kv_entries(Exec& exec, KvFormat format, const Shape& shape) {
  const KvFormatTraits traits = traits_of(format);
  const std::int64_t bits = shape[3] * traits.bits;
  const std::int64_t extent = bits / (8 * static_cast<std::int64_t>(dtype_size(traits.dtype)));
  KvEntries entries;
  PAGODA_ASSIGN_OR_RETURN(
      entries.elements,
      exec.allocate_persistent(traits.dtype, {shape[0], shape[1], shape[2], extent}));
  if (traits.num_scales > 0) {
    PAGODA_ASSIGN_OR_RETURN(
        entries.scales, exec.allocate_persistent(
                            DType::kBFloat16, {shape[0], shape[2], traits.num_scales, shape[1]}));
  }
  return entries;
}

}  // namespace pagoda
