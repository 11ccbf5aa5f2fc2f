#include "ops/op_cases.h"

#include "ops/op_bodies.h"

namespace pagoda {

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> all;
  for (const auto cases : {add_rms_norm_cases,     apply_logit_bias_cases,
                           apply_penalties_cases,  apply_token_mask_cases,
                           argmax_cases,           attention_cases,
                           count_tokens_cases,     gated_linear_cases,
                           gather_rows_cases,      glu_cases,
                           kv_copy_blocks_cases,   kv_write_cases,
                           linear_cases,           log_probs_cases,
                           resolve_tokens_cases,   rms_norm_cases,
                           rms_norm_rope_cases,    rope_cases,
                           rope_kv_write_cases,    sample_cases,
                           select_rows_cases,      soft_cap_cases,
                           top_k_top_p_min_p_cases}) {
    for (OpCase& op_case : cases()) all.push_back(std::move(op_case));
  }
  return all;
}

std::vector<OpSupport> op_support() {
  std::vector<OpSupport> support;
  for (const OpCase& op_case : all_op_cases()) {
    if (support.empty() || support.back().op != op_case.op) {
      support.push_back({.op = op_case.op});
      for (const Backend backend : kBackends) {
        support.back().is_built[static_cast<std::size_t>(backend)] =
            op_has_body(op_case.op, backend);
      }
    }
    ++support.back().num_cases;
  }
  return support;
}

}  // namespace pagoda
