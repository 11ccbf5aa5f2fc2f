// Inputs of the sampling ops' case lists: rows with ties, with forbidden tokens, flat and peaked
// ones, and rows that hold no token.
#pragma once

#include <span>
#include <vector>

#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda {

// Returns the logits of row `row`; the number determines the kind of row.
std::vector<float> case_logits(int row, int vocab_size);
// Uploads rows `rows`: [rows.size(), vocab_size]
Tensor upload_case_logits(Exec& exec, std::span<const int> rows, int vocab_size);
// Uploads inverse temperatures, [rows.size()]; with `with_greedy` every fifth row is greedy.
Tensor upload_case_temperatures(Exec& exec, std::span<const int> rows, bool with_greedy);
// Uploads filters. Each is on in some rows and off in others, in many combinations.
RowFilters upload_case_filters(Exec& exec, std::span<const int> rows, int vocab_size);

}  // namespace pagoda
