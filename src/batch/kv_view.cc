#include "batch/kv_view.h"

namespace pagoda {

Result<KvEntries> allocate_kv_entries(Exec& exec, KvFormat format, const Shape& shape,
                                      const Tensor& elements) {
  const KvFormatTraits traits = traits_of(format);
  const Shape of_elements = {shape[0], shape[1], shape[2], kv_entry_elements(format, shape[3])};
  KvEntries entries = {.format = format, .elements = {}, .scales = {}};
  if (elements.defined()) {
    entries.elements = Tensor(elements.buffer(), traits.dtype, of_elements);
  } else {
    PAGODA_ASSIGN_OR_RETURN(entries.elements, exec.allocate_persistent(traits.dtype, of_elements));
  }
  if (traits.num_scales > 0) {
    PAGODA_ASSIGN_OR_RETURN(
        entries.scales, exec.allocate_persistent(
                            DType::kBFloat16, {shape[0], shape[2], traits.num_scales, shape[1]}));
  }
  return entries;
}

}  // namespace pagoda
