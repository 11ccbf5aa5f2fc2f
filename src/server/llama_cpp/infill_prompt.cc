#include "server/llama_cpp/infill_prompt.h"

#include <algorithm>
#include <string_view>

#include "core/utf8.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

// Longer texts are cut before they are encoded: few tokens have more bytes.
constexpr std::size_t kMostTokenBytes = 16;
// Tokens of marks, and those of names that no client tells: what the files belong to, and which of
// them is edited.
constexpr int kMarkTokens = 24;
constexpr std::string_view kRepository = "project\n", kEditedFile = "file\n";
// Stands before a text where the model has no token for it, as llama.cpp writes it.
constexpr std::string_view kSnippet = "\n\n--- snippet ---\n\n";

// Appends a text's tokens. Marks of tokens in it are text.
std::optional<ApiError> append_text(const ServedModel& model, std::string_view text,
                                    std::string_view param, std::vector<int>& ids) {
  auto more = model.tokenizer->encode(text, kAsText);
  if (!more.ok()) return api_error(more.status(), std::string(param));
  ids.insert(ids.end(), more->begin(), more->end());
  return {};
}

std::optional<ApiError> append_file(const ServedModel& model, const InfillFile& file,
                                    std::vector<int>& ids) {
  if (!model.fill_in->file_id) {
    if (auto error = append_text(model, kSnippet, "input_extra", ids)) return error;
  } else {
    ids.push_back(*model.fill_in->file_id);
    const std::string name = (file.filename.empty() ? "file" : file.filename) + "\n";
    if (auto error = append_text(model, name, "input_extra", ids)) return error;
  }
  return append_text(model, file.text, "input_extra", ids);
}

// Appends as many of the last files as have room, whole, in their order; the prompt is cut where
// not all have.
std::optional<ApiError> append_files(const ServedModel& model, const std::vector<InfillFile>& files,
                                     std::ptrdiff_t room, InfillPrompt& prompt) {
  std::vector<std::vector<int>> kept;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    std::vector<int> ids;
    if (file->text.size() + file->filename.size() > room * kMostTokenBytes) break;
    if (auto error = append_file(model, *file, ids)) return error;
    if (std::ssize(ids) > room) break;
    room -= std::ssize(ids);
    kept.push_back(std::move(ids));
  }
  prompt.is_cut = kept.size() < files.size();
  if (kept.empty()) return {};
  const FillInFormat& format = *model.fill_in;
  if (format.repository_id) {
    prompt.token_ids.push_back(*format.repository_id);
    if (auto error = append_text(model, kRepository, "input_extra", prompt.token_ids)) return error;
  }
  for (auto ids = kept.rbegin(); ids != kept.rend(); ++ids)
    prompt.token_ids.insert(prompt.token_ids.end(), ids->begin(), ids->end());
  if (!format.file_id) return {};
  prompt.token_ids.push_back(*format.file_id);
  return append_text(model, kEditedFile, "input_extra", prompt.token_ids);
}

// Returns the tokens that a prompt may have beside marks, so that an answer has room.
std::ptrdiff_t room_of(const ServedModel& model, const InfillRequest& request) {
  const int most = model.engine->limits().max_model_len;
  const int answer = std::min(request.generation.max_tokens.value_or(most / 4), most / 2);
  return std::max(most - answer - kMarkTokens, 0);
}

}  // namespace

ApiResult<InfillPrompt> make_infill_prompt(const ServedModel& model, const InfillRequest& request) {
  if (const Status known = check_fill_in(model, "input_suffix"); !known.ok())
    return api_error(known);
  const std::ptrdiff_t room = room_of(model, request);
  const std::size_t most_bytes = room * kMostTokenBytes;
  std::vector<int> before, behind;
  const auto prefix = end_of(request.prefix, most_bytes);
  if (auto error = append_text(model, prefix, "input_prefix", before)) return std::move(*error);
  const auto suffix = beginning_of(request.suffix, most_bytes);
  if (auto error = append_text(model, suffix, "input_suffix", behind)) return std::move(*error);

  InfillPrompt prompt;
  const auto num_behind = std::min(std::ssize(behind), room / 4);
  const auto num_before = std::min(std::ssize(before), room - num_behind);
  const bool is_text_cut = num_behind < std::ssize(behind) || num_before < std::ssize(before) ||
                           prefix.size() < request.prefix.size() ||
                           suffix.size() < request.suffix.size();
  auto begin = tokens_before_text(model);
  if (!begin.ok()) return api_error(begin.status());
  prompt.token_ids = *std::move(begin);
  if (auto error = append_files(model, request.files, room - num_behind - num_before, prompt))
    return std::move(*error);
  prompt.is_cut |= is_text_cut;
  prompt.token_ids =
      fill_in_prompt(*model.fill_in, prompt.token_ids, std::span(before).last(num_before),
                     std::span(behind).first(num_behind));
  return prompt;
}

}  // namespace pagoda
