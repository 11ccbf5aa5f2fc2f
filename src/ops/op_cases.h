// All op cases of the project, and which backend has which op.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ops/op_case.h"

namespace pagoda {

std::vector<OpCase> add_rms_norm_cases();
std::vector<OpCase> apply_logit_bias_cases();
std::vector<OpCase> apply_penalties_cases();
std::vector<OpCase> apply_token_mask_cases();
std::vector<OpCase> argmax_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> count_tokens_cases();
std::vector<OpCase> gated_linear_cases();
std::vector<OpCase> gather_rows_cases();
std::vector<OpCase> glu_cases();
std::vector<OpCase> kv_copy_blocks_cases();
std::vector<OpCase> kv_write_cases();
std::vector<OpCase> linear_cases();
std::vector<OpCase> log_probs_cases();
std::vector<OpCase> resolve_tokens_cases();
std::vector<OpCase> rms_norm_cases();
std::vector<OpCase> rms_norm_rope_cases();
std::vector<OpCase> rope_cases();
std::vector<OpCase> rope_kv_write_cases();
std::vector<OpCase> sample_cases();
std::vector<OpCase> select_rows_cases();
std::vector<OpCase> soft_cap_cases();
std::vector<OpCase> top_k_top_p_min_p_cases();

std::vector<OpCase> all_op_cases();

struct OpSupport {
  std::string op;
  int num_cases = 0;
  std::array<bool, kNumBackends> is_built = {};  // by Backend: whether it has a body
};
// Returns one entry an op, by name.
std::vector<OpSupport> op_support();

}  // namespace pagoda
