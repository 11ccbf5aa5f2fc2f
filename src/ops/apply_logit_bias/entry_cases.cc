#include "ops/apply_logit_bias/entry_cases.h"

#include <random>

#include "ops/sample/row_cases.h"

namespace pagoda {

CaseEntries::CaseEntries(std::span<const int> case_rows, int vocab_size) {
  for (std::size_t place = 0; place < case_rows.size(); ++place) {
    const int row = case_rows[place];
    if (row % 4 == 3) continue;
    std::mt19937 random(static_cast<std::uint32_t>(row));
    for (int id = static_cast<int>(random() % 3); id < vocab_size;
         id += 1 + static_cast<int>(random() % (1 + vocab_size / 5))) {
      rows.push_back(static_cast<std::int32_t>(place));
      token_ids.push_back(id);
      numbers.push_back(random());
    }
  }
}

LogitEntries CaseEntries::upload(Exec& exec) const {
  return {.rows = exec.upload<std::int32_t>(rows, {size()}),
          .token_ids = exec.upload<std::int32_t>(token_ids, {size()})};
}

std::vector<float> case_number_rows(std::span<const int> rows, int vocab_size) {
  std::vector<float> values;
  for (const int row : rows) {
    // Skips the kinds of row with NaN, with infinity, and with values too large for float16.
    const std::vector<float> logits =
        case_logits(row % 8 == 5 || row % 16 == 15 ? row + 1 : row, vocab_size);
    values.insert(values.end(), logits.begin(), logits.end());
  }
  return values;
}

}  // namespace pagoda
