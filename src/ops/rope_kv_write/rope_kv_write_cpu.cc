#include <algorithm>

#include "backend/cpu/cpu_exec.h"
#include "ops/kv_write/kv_writer_cpu.h"
#include "ops/rms_norm/rms_norm_cpu.h"
#include "ops/rms_norm_rope/rms_norm_rope_cpu.h"
#include "ops/rope/rope_cpu.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "ops/rope_kv_write/take_offset.h"

namespace pagoda::cpu {
namespace {

// Elements of queries, keys and values worth a fork, some microseconds of one core.
constexpr std::int64_t kForkElements = 8192;

// Queries or keys that are rotated, and normed before if there is a norm.
struct RotatedHeads {
  const Tensor& from;
  const Tensor& norm;
  const Tensor& angles;
  const Tensor& to;

  void rotate(const RopeKvWriteArgs& args, std::int64_t begin, std::int64_t end) const {
    if (!norm.defined()) return rope_tokens(from, angles, args.rope, begin, end, to);
    const RmsNormRopeArgs both = {.norm = args.norm, .rope = args.rope};
    rms_norm_rope_tokens(from, norm, angles, both, begin, end, to);
  }
};

}  // namespace

// Computes all steps of a token one after the other, so that it stays in the first-level cache, and
// there is only one fork.
RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args) {
  const std::int64_t num_q = args.num_heads, num_k = view.num_kv_heads();
  const std::int64_t tokens = joined.extent(0), width = joined.extent(1);
  const Tensor heads = joined.split_last(width / view.head_dim(), view.head_dim());
  const Tensor from_q = heads.slice(1, 0, num_q), from_k = heads.slice(1, num_q, num_q + num_k);
  const std::int64_t first_v = args.keys_are_values ? num_q : num_q + num_k;
  const Tensor from_v = heads.slice(1, first_v, first_v + num_k);

  Tensor q = exec.allocate(DType::kFloat32, from_q.shape());
  const Tensor k = exec.allocate(DType::kFloat32, from_k.shape());
  const Tensor v = args.v_norm.defined() ? exec.allocate(DType::kFloat32, from_v.shape()) : from_v;
  const Tensor& q_angles = args.query_angles.defined() ? args.query_angles : angles;
  const RotatedHeads queries = {from_q, q_norm, q_angles, q};
  const RotatedHeads keys = {from_k, k_norm, angles, k};
  const KvWriter writer(exec, view, batch);
  const std::int64_t grain = std::max<std::int64_t>(kForkElements / width, 1);
  pool_of(exec).parallel_for(tokens, grain, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t t = begin; t < end; ++t) {
      queries.rotate(args, t, t + 1);
      keys.rotate(args, t, t + 1);
      take_offset(k, args.key_offset, t, t + 1);
      if (args.v_norm.defined()) rms_norm_tokens(from_v, args.v_norm, args.norm, t, t + 1, v);
      writer.write(k, v, t, t + 1, thread);
    }
  });
  return {.q = std::move(q), .view = view};
}

}  // namespace pagoda::cpu
