#include <random>

#include "ops/apply_logit_bias/entry_cases.h"
#include "ops/apply_token_mask/apply_token_mask.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

// Returns a mask that allows few tokens, half of them, nearly all, all, or none.
std::vector<std::int32_t> case_mask(int row, int num_words) {
  std::mt19937 random(static_cast<std::uint32_t>(row));
  std::vector<std::int32_t> words;
  for (int i = 0; i < num_words; ++i) {
    std::uint32_t word = random();
    if (row % 5 == 0) word &= random() & random() & random();
    if (row % 5 == 1) word |= random() | random() | random() | random();
    if (row % 5 == 2) word = ~std::uint32_t{0};
    if (row % 5 == 3) word = 0;
    words.push_back(static_cast<std::int32_t>(word));
  }
  return words;
}

OpCase make_apply_token_mask_case(int rows, int vocab_size, DType dtype, bool is_large = false) {
  OpCase result{.op = "apply_token_mask",
                .description = fmt::format("{} x {} {}", rows, vocab_size, dtype_name(dtype)),
                .num_tokens = rows,
                .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0},
                .is_large = is_large};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const int num_words = (vocab_size + 31) / 32;
    std::vector<std::int32_t> words(num_words, 0);  // a mask that no row uses
    std::vector<std::int32_t> mask_of;
    for (const int row : wanted) {
      mask_of.push_back(row % 3 == 2 ? -1 : static_cast<std::int32_t>(words.size()) / num_words);
      if (mask_of.back() < 0) continue;
      const std::vector<std::int32_t> mask = case_mask(row, num_words);
      words.insert(words.end(), mask.begin(), mask.end());
    }
    const auto n = static_cast<std::int64_t>(wanted.size());
    const auto num_masks = static_cast<std::int64_t>(words.size()) / num_words;
    return CaseRun(
        [&exec,
         logits = upload_as(exec, dtype, case_number_rows(wanted, vocab_size), {n, vocab_size}),
         masks = TokenMasks{.words = exec.upload<std::int32_t>(words, {num_masks, num_words}),
                            .mask_of = exec.upload<std::int32_t>(mask_of, {n})}] {
          return std::vector<Tensor>{apply_token_mask(exec, logits, masks)};
        });
  };
  result.bytes = static_cast<double>(2 * dtype_size(dtype)) * rows * vocab_size;
  return result;
}

}  // namespace

std::vector<OpCase> apply_token_mask_cases() {
  return {make_apply_token_mask_case(1, 1, DType::kFloat32),
          make_apply_token_mask_case(20, 130, DType::kFloat32),
          make_apply_token_mask_case(12, 1000, DType::kBFloat16),
          make_apply_token_mask_case(12, 1000, DType::kFloat16),
          make_apply_token_mask_case(8, 151936, DType::kFloat32, true)};
}

}  // namespace pagoda
