#include "batch/kv_view.h"

namespace pagoda {

Result<KvEntries> allocate_kv_entries(Exec& exec, KvFormat format, const Shape& shape) {
  const KvFormatTraits traits = traits_of(format);
  KvEntries entries;
  PAGODA_ASSIGN_OR_RETURN(
      entries.elements,
      exec.allocate_persistent(
          traits.dtype, {shape[0], shape[1], shape[2], kv_entry_elements(format, shape[3])}));
  if (traits.num_scales > 0) {
    PAGODA_ASSIGN_OR_RETURN(
        entries.scales, exec.allocate_persistent(
                            DType::kBFloat16, {shape[0], shape[2], traits.num_scales, shape[1]}));
  }
  return entries;
}

}  // namespace pagoda
