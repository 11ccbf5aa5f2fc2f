#include "serving/cut_prompt.h"

#include <algorithm>

#include "serving/prompt.h"

namespace pagoda {
namespace {

// Cuts `ids`. `bare` are the text's own tokens; the tokens around them stay if there is room for at
// least one of the text's.
void cut_ids(std::vector<int>& ids, const std::vector<int>& bare, const PromptCut& cut) {
  const auto found = std::search(ids.begin(), ids.end(), bare.begin(), bare.end());
  std::ptrdiff_t num_before = found - ids.begin();
  std::ptrdiff_t num_behind = ids.end() - found - std::ssize(bare);
  if (found == ids.end() || num_before + num_behind >= cut.most) num_before = num_behind = 0;
  const std::ptrdiff_t num_kept = cut.most - num_before - num_behind;
  if (cut.keeps_end) {
    ids.erase(ids.begin() + num_before, ids.end() - num_behind - num_kept);
  } else {
    ids.erase(ids.begin() + num_before + num_kept, ids.end() - num_behind);
  }
}

}  // namespace

Result<std::vector<int>> encode_cut(const ServedModel& model, const PromptInput& prompt,
                                    bool add_special_tokens, const PromptCut& cut,
                                    std::string_view field) {
  std::vector<int> ids, bare;
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    PAGODA_ASSIGN_OR_RETURN(ids, tokenize_text(model, *text, add_special_tokens, field));
    if (std::ssize(ids) <= cut.most) return ids;
    PAGODA_ASSIGN_OR_RETURN(bare, tokenize_text(model, *text, /*add_special_tokens=*/false, field));
  } else {
    ids = bare = std::get<std::vector<int>>(prompt);
  }
  if (std::ssize(ids) > cut.most) cut_ids(ids, bare, cut);
  return ids;
}

Result<std::optional<int>> resolve_cut(const ServedModel& model, std::optional<int> asked) {
  const int max_model_len = model.engine->limits().max_model_len;
  if (asked == -1) return std::optional(max_model_len);
  if (!asked || *asked <= max_model_len) return asked;
  return invalid_argument(
             "'truncate_prompt_tokens': expected at most {}, the context's length, got {}",
             max_model_len, *asked)
      .of_field("truncate_prompt_tokens", "out_of_range");
}

Result<std::optional<int>> resolve_answered_cut(const ServedModel& model, std::optional<int> asked,
                                                std::optional<int> max_tokens) {
  if (asked != -1) return resolve_cut(model, asked);
  const int most = most_prompt_tokens(model.engine->limits());
  const int num_answer_tokens = std::clamp(max_tokens.value_or(1), 1, most);
  return std::optional(most + 1 - num_answer_tokens);
}

}  // namespace pagoda
