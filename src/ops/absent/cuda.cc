// The ops of a backend that this binary was built without: make_exec() refuses to make its Exec, so
// none of them can be reached.
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/apply_logit_bias/apply_logit_bias.h"
#include "ops/apply_penalties/apply_penalties.h"
#include "ops/apply_token_mask/apply_token_mask.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/count_tokens/count_tokens.h"
#include "ops/gated_linear/gated_linear.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/log_probs/log_probs.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"
#include "ops/sample/sample.h"
#include "ops/select_rows/select_rows.h"
#include "ops/swiglu/swiglu.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda::cuda {
namespace {

[[noreturn]] void absent(std::string_view op) {
  check_failed(__FILE__, __LINE__, "cuda::kBuilt", op);
}

}  // namespace

AddRmsNormResult add_rms_norm(Exec&, const Tensor&, const Tensor&, const Tensor&,
                              const RmsNormArgs&) {
  absent("add_rms_norm");
}

Tensor argmax(Exec&, const Tensor&) {
  absent("argmax");
}

Tensor attention(Exec&, const Tensor&, const KvView&, const StepBatch&, const AttentionArgs&) {
  absent("attention");
}

Tensor count_tokens(Exec&, const Tensor&, const Tensor&, const CountedTokens&) {
  absent("count_tokens");
}

Tensor gated_linear(Exec&, const Tensor&, const Weight&, const Tensor&) {
  absent("gated_linear");
}

Tensor gather_rows(Exec&, const Weight&, const Tensor&) {
  absent("gather_rows");
}

KvView kv_copy_blocks(Exec&, const KvView&, const StepBatch&) {
  absent("kv_copy_blocks");
}

KvView kv_write(Exec&, const KvView&, const Tensor&, const Tensor&, const StepBatch&) {
  absent("kv_write");
}

Tensor linear(Exec&, const Tensor&, const Weight&, const LinearArgs&) {
  absent("linear");
}

Tensor resolve_tokens(Exec&, const Tensor&, const Tensor&, const Tensor&) {
  absent("resolve_tokens");
}

Tensor rms_norm(Exec&, const Tensor&, const Tensor&, const RmsNormArgs&) {
  absent("rms_norm");
}

Tensor rms_norm_rope(Exec&, const Tensor&, const Tensor&, const Tensor&, const RmsNormRopeArgs&) {
  absent("rms_norm_rope");
}

Tensor rope(Exec&, const Tensor&, const Tensor&, const RopeArgs&) {
  absent("rope");
}

Tensor rope_angles(Exec&, const Tensor&, const Tensor&) {
  absent("rope_angles");
}

Tensor sample(Exec&, const Tensor&, const SampleArgs&) {
  absent("sample");
}

Tensor select_rows(Exec&, const Tensor&, const Tensor&) {
  absent("select_rows");
}

Tensor swiglu(Exec&, const Tensor&) {
  absent("swiglu");
}

KeptTokens top_k_top_p_min_p(Exec&, const Tensor&, const Tensor&, const RowFilters&) {
  absent("top_k_top_p_min_p");
}

LogProbs log_probs(Exec&, const Tensor&, const Tensor&, const LogProbsArgs&) {
  absent("log_probs");
}

Tensor apply_logit_bias(Exec&, const Tensor&, const LogitEntries&, const Tensor&) {
  absent("apply_logit_bias");
}

Tensor apply_token_mask(Exec&, const Tensor&, const TokenMasks&) {
  absent("apply_token_mask");
}

Tensor apply_penalties(Exec&, const Tensor&, const SeenTokenCounts&, const PenaltyFactors&) {
  absent("apply_penalties");
}

}  // namespace pagoda::cuda
