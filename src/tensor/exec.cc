#include "tensor/exec.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/machine.h"
#include "tensor/op_profile.h"

namespace pagoda {
namespace {

// The tokens of a step on native backends. More rows do not make products faster, but need more
// memory: 2048 tokens of a hidden size of 1024 take 84 MB, a quarter of a small checkpoint.
constexpr int kNativeTokens = 512;
// With many threads more tokens help: threads wait for each other less often, and have larger parts
// of attention.
constexpr int kTokensPerThread = 128;

constexpr std::array<BackendTraits, kNumBackends> kTraits = {{
    {.name = "reference",
     .is_native = true,
     .activation_dtype = DType::kFloat32,
     .kv_cache_format = KvFormat::kFloat32,
     .max_num_batched_tokens = kNativeTokens},
    {.name = "cpu",
     .is_native = true,
     .takes_bytes = true,
     .activation_dtype = DType::kFloat32,
     .max_num_batched_tokens = kNativeTokens,
     .batched_tokens_per_thread = kTokensPerThread},
    {.name = "mlx", .activation_dtype = DType::kFloat32},
    {.name = "cuda", .activation_dtype = DType::kFloat32},
}};

}  // namespace

const BackendTraits& traits_of(Backend backend) {
  return kTraits[static_cast<std::size_t>(backend)];
}

std::uint64_t Exec::begin_op() {
  return static_cast<std::uint64_t>(Clock::system().now().time_since_epoch().count());
}

void Exec::end_op(std::uint64_t begun, const OpCall& call) {
  const Clock::TimePoint start(
      Clock::TimePoint::duration(static_cast<Clock::TimePoint::rep>(begun)));
  profile_->add(call, seconds_between(start, Clock::system().now()));
}

void Exec::upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    tensors[i] = upload(arrays[i].dtype, arrays[i].shape, arrays[i].bytes);
}

Status Exec::read_packet(std::span<const Tensor> tensors,
                         std::span<std::span<const std::byte>> values) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    values[i] = {};
    if (!tensors[i].defined()) continue;
    PAGODA_ASSIGN_OR_RETURN(values[i], read(tensors[i]));
  }
  return ok_status();
}

void Exec::write(const Tensor&, std::int64_t, std::span<const std::byte>) {
  PAGODA_CHECK(false, "[exec] a backend without writes in place is written to");
}

std::int64_t Exec::available_bytes() const {
  return available_memory_bytes();
}

}  // namespace pagoda
