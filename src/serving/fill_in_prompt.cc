#include "serving/fill_in_prompt.h"

#include <algorithm>
#include <span>

#include "core/utf8.h"

namespace pagoda {
namespace {

// Special tokens in a text are plain text, and the tokenizer adds no tokens around it.
constexpr EncodeOptions kAsText = {.add_special_tokens = false, .parse_special = false};

// The most bytes of nearly all tokens. Longer texts are cut before they are encoded.
constexpr std::size_t kMostTokenBytes = 16;
// Tokens reserved for marks and for two names that no client sends: those of the repository and of
// the edited file.
constexpr int kMarkTokens = 24;
constexpr std::string_view kRepository = "project\n", kEditedFile = "file\n";
// The text before each file, as in llama.cpp, if the model has no token that begins a file.
constexpr std::string_view kSnippet = "\n\n--- snippet ---\n\n";

Status check_fill_in(const ServedModel& model, std::string_view field) {
  if (model.fill_in) return ok_status();
  return invalid_argument("'{}': this model has no tokens for a gap between two texts", field)
      .of_field(field, "no_fill_in");
}

// Returns the token that the tokenizer puts before every text, or no token.
Result<std::vector<int>> tokens_before_text(const ServedModel& model) {
  PAGODA_ASSIGN_OR_RETURN(
      std::vector<int> around,
      encode_field(*model.tokenizer, "", {.add_special_tokens = true}, "prompt"));
  const bool has_bos = !around.empty() && around.front() == model.tokenizer->bos_token_id();
  around.resize(has_bos ? 1 : 0);
  return around;
}

Status append_text(const ServedModel& model, std::string_view text, std::string_view field,
                   std::vector<int>& ids) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> more,
                          encode_field(*model.tokenizer, text, kAsText, field));
  ids.insert(ids.end(), more.begin(), more.end());
  return ok_status();
}

Status append_file(const ServedModel& model, const FillInFile& file, std::vector<int>& ids) {
  if (!model.fill_in->file_id) {
    PAGODA_RETURN_IF_ERROR(append_text(model, kSnippet, "input_extra", ids));
  } else {
    ids.push_back(*model.fill_in->file_id);
    const std::string name = (file.filename.empty() ? "file" : file.filename) + "\n";
    PAGODA_RETURN_IF_ERROR(append_text(model, name, "input_extra", ids));
  }
  return append_text(model, file.text, "input_extra", ids);
}

// Appends as many of the last files as have room, whole and in their order. Sets is_cut if not all
// have.
Status append_files(const ServedModel& model, const std::vector<FillInFile>& files,
                    std::ptrdiff_t room, CutPrompt& prompt) {
  std::vector<std::vector<int>> kept;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    std::vector<int> ids;
    if (file->text.size() + file->filename.size() > room * kMostTokenBytes) break;
    PAGODA_RETURN_IF_ERROR(append_file(model, *file, ids));
    if (std::ssize(ids) > room) break;
    room -= std::ssize(ids);
    kept.push_back(std::move(ids));
  }
  prompt.is_cut = kept.size() < files.size();
  if (kept.empty()) return ok_status();
  const FillInFormat& format = *model.fill_in;
  if (format.repository_id) {
    prompt.token_ids.push_back(*format.repository_id);
    PAGODA_RETURN_IF_ERROR(append_text(model, kRepository, "input_extra", prompt.token_ids));
  }
  for (auto ids = kept.rbegin(); ids != kept.rend(); ++ids)
    prompt.token_ids.insert(prompt.token_ids.end(), ids->begin(), ids->end());
  if (!format.file_id) return ok_status();
  prompt.token_ids.push_back(*format.file_id);
  return append_text(model, kEditedFile, "input_extra", prompt.token_ids);
}

// Returns how many tokens a prompt may have besides marks, so that an answer has room.
std::ptrdiff_t room_of(const ServedModel& model, std::optional<int> max_tokens) {
  const int most = model.engine->limits().max_model_len;
  const int answer = std::min(max_tokens.value_or(most / 4), most / 2);
  return std::max(most - answer - kMarkTokens, 0);
}

}  // namespace

Result<EncodedPrompt> encode_fill_in(const ServedModel& model, std::string_view prefix,
                                     std::string_view suffix, bool add_special_tokens) {
  PAGODA_RETURN_IF_ERROR(check_fill_in(model, "suffix"));
  const int most = most_prompt_tokens(model.engine->limits());
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> before,
                          token_ids_if_near(model, prefix, most, kAsText, "prompt"));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> after,
                          token_ids_if_near(model, suffix, most, kAsText, "suffix"));
  PAGODA_ASSIGN_OR_RETURN(std::vector<int> begin, tokens_before_text(model));
  if (!add_special_tokens) begin.clear();
  EncodedPrompt encoded = {.token_ids = fill_in_prompt(*model.fill_in, begin, before, after),
                           .text = std::string(prefix)};
  PAGODA_RETURN_IF_ERROR(
      check_token_ids(model.engine->limits(), encoded.token_ids, most, "prompt"));
  return encoded;
}

Result<CutPrompt> encode_at_cursor(const ServedModel& model, const CursorTexts& texts,
                                   std::optional<int> max_tokens) {
  PAGODA_RETURN_IF_ERROR(check_fill_in(model, "input_suffix"));
  const std::ptrdiff_t room = room_of(model, max_tokens);
  const std::size_t most_bytes = room * kMostTokenBytes;
  const auto prefix = end_of(texts.prefix, most_bytes);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> before,
                          encode_field(*model.tokenizer, prefix, kAsText, "input_prefix"));
  const auto suffix = beginning_of(texts.suffix, most_bytes);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> after,
                          encode_field(*model.tokenizer, suffix, kAsText, "input_suffix"));

  CutPrompt prompt;
  const auto num_after = std::min(std::ssize(after), room / 4);
  const auto num_before = std::min(std::ssize(before), room - num_after);
  PAGODA_ASSIGN_OR_RETURN(prompt.token_ids, tokens_before_text(model));
  PAGODA_RETURN_IF_ERROR(append_files(model, texts.files, room - num_after - num_before, prompt));
  prompt.is_cut |= num_after < std::ssize(after) || num_before < std::ssize(before) ||
                   prefix.size() < texts.prefix.size() || suffix.size() < texts.suffix.size();
  prompt.token_ids =
      fill_in_prompt(*model.fill_in, prompt.token_ids, std::span(before).last(num_before),
                     std::span(after).first(num_after));
  return prompt;
}

}  // namespace pagoda
