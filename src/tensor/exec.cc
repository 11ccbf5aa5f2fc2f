#include "tensor/exec.h"

#include "core/check.h"
#include "core/machine.h"

namespace pagoda {
namespace {

// Products on native backends gain nothing from more rows of a step than that, and a step's memory
// grows with them: 2048 tokens of a hidden size of 1024 take 84 MB, a quarter of a small
// checkpoint.
constexpr int kNativeTokens = 512;

constexpr std::array<BackendTraits, kNumBackends> kTraits = {{
    {.name = "reference",
     .is_native = true,
     .activation_dtype = DType::kFloat32,
     .kv_cache_dtype = DType::kFloat32,
     .max_num_batched_tokens = kNativeTokens},
    {.name = "cpu",
     .is_native = true,
     .takes_bytes = true,
     .activation_dtype = DType::kFloat32,
     .max_num_batched_tokens = kNativeTokens},
    {.name = "mlx"},
    {.name = "cuda"},
}};

}  // namespace

const BackendTraits& traits_of(Backend backend) {
  return kTraits[static_cast<std::size_t>(backend)];
}

void Exec::write(const Tensor&, std::int64_t, std::span<const std::byte>) {
  PAGODA_CHECK(false, "[exec] a backend without writes in place is written to");
}

std::int64_t Exec::available_bytes() const {
  return available_memory_bytes();
}

}  // namespace pagoda
