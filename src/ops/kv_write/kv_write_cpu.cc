#include "backend/cpu/cpu_exec.h"
#include "ops/kv_write/kv_write.h"

namespace pagoda::cpu {
namespace {

// Tokens worth a fork: below, a write takes less time than waking the workers.
constexpr std::int64_t kGrain = 16;

template <typename T>
void write_token(const Tensor& entries, std::int64_t token, T* slot) {
  const std::int64_t heads = entries.extent(1), head_dim = entries.extent(2);
  for (std::int64_t h = 0; h < heads; ++h, slot += head_dim) {
    const float* from = entries.data<float>() + token * entries.stride(0) + h * entries.stride(1);
    for (std::int64_t d = 0; d < head_dim; ++d) slot[d] = from_float<T>(from[d]);
  }
}

template <typename T>
void write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
           const std::int32_t* slots) {
  const std::int64_t width = view.num_kv_heads() * view.head_dim();
  T* keys = view.keys.data<T>();
  T* values = view.values.data<T>();
  pool_of(exec).parallel_for(k.extent(0), kGrain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      if (slots[t] < 0) continue;
      write_token(k, t, keys + slots[t] * width);
      write_token(v, t, values + slots[t] * width);
    }
  });
}

}  // namespace

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const std::int32_t* slots = batch.slot_mapping.data<std::int32_t>();
  switch (view.keys.dtype()) {
    case DType::kFloat32:
      write<float>(exec, view, k, v, slots);
      break;
    case DType::kBFloat16:
      write<bf16>(exec, view, k, v, slots);
      break;
    case DType::kFloat16:
      write<f16>(exec, view, k, v, slots);
      break;
    case DType::kInt32:
      PAGODA_CHECK(false, "[kv_write] a cache of int32");
  }
  return view;
}

}  // namespace pagoda::cpu
