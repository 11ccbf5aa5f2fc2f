#include "ops/kv_write/kv_write.h"

namespace pagoda::reference {
namespace {

template <typename T>
void write(const Tensor& entries, const Tensor& to, const std::int32_t* slots) {
  const Tensor& x = entries;
  const std::int64_t heads = x.extent(1), head_dim = x.extent(2);
  for (std::int64_t t = 0; t < x.extent(0); ++t) {
    if (slots[t] < 0) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      const float* from = x.data<float>() + t * x.stride(0) + h * x.stride(1);
      T* slot = to.data<T>() + (slots[t] * heads + h) * head_dim;
      for (std::int64_t d = 0; d < head_dim; ++d) slot[d] = from_float<T>(from[d]);
    }
  }
}

void write(const Tensor& entries, const Tensor& to, const std::int32_t* slots) {
  switch (to.dtype()) {
    case DType::kFloat32:
      return write<float>(entries, to, slots);
    case DType::kBFloat16:
      return write<bf16>(entries, to, slots);
    case DType::kFloat16:
      return write<f16>(entries, to, slots);
    case DType::kInt32:
      PAGODA_CHECK(false, "[kv_write] a cache of int32");
  }
}

}  // namespace

KvView kv_write(Exec&, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const std::int32_t* slots = batch.slot_mapping.data<std::int32_t>();
  write(k, view.keys, slots);
  write(v, view.values, slots);
  return view;
}

}  // namespace pagoda::reference
