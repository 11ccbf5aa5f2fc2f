// Random entries of logits, for the test cases of ops that change single logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/apply_logit_bias/apply_logit_bias.h"

namespace pagoda {

// Some distinct tokens of each row, except every fourth row. They depend only on the row's number.
struct CaseEntries {
  CaseEntries(std::span<const int> rows, int vocab_size);

  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
  LogitEntries upload(Exec& exec) const;

  std::vector<std::int32_t> rows;  // indices into the list of rows
  std::vector<std::int32_t> token_ids;
  std::vector<std::uint32_t> numbers;  // random, one per entry
};

// Returns rows that hold numbers or -inf, as float32 values.
std::vector<float> case_number_rows(std::span<const int> rows, int vocab_size);

}  // namespace pagoda
