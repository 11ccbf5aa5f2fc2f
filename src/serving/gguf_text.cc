#include "serving/gguf_text.h"

#include <limits>

namespace pagoda {

namespace {

template <typename T, typename U>
Status assign_if_present(Result<U> read, T& to) {
  if (read.ok()) {
    to = T(*std::move(read));
    return ok_status();
  }
  return read.status().code() == StatusCode::kNotFound ? ok_status() : read.status();
}

std::vector<std::string> copies(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

Status read_id(const GgufFile& file, std::string_view key, std::optional<int>& to) {
  std::optional<std::int64_t> id;
  PAGODA_RETURN_IF_ERROR(assign_if_present(file.integer(key), id));
  if (!id) return ok_status();
  if (*id < 0 || *id > std::numeric_limits<int>::max())
    return data_loss("[gguf] {}: expected a token id, got {}", key, *id);
  to = static_cast<int>(*id);
  return ok_status();
}

}  // namespace

Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  PAGODA_ASSIGN_OR_RETURN(vocabulary.model, file.string("tokenizer.ggml.model"));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.pre, file.string_or("tokenizer.ggml.pre", ""));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string_view> tokens,
                          file.strings("tokenizer.ggml.tokens"));
  vocabulary.tokens = copies(tokens);
  PAGODA_RETURN_IF_ERROR(
      assign_if_present(file.numbers("tokenizer.ggml.scores"), vocabulary.scores));
  std::vector<std::int64_t> types;
  PAGODA_RETURN_IF_ERROR(assign_if_present(file.integers("tokenizer.ggml.token_type"), types));
  vocabulary.token_types.assign(types.begin(), types.end());
  std::vector<std::string_view> merges;
  PAGODA_RETURN_IF_ERROR(assign_if_present(file.strings("tokenizer.ggml.merges"), merges));
  vocabulary.merges = copies(merges);
  PAGODA_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.bos_token_id", vocabulary.bos_token_id));
  PAGODA_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eos_token_id", vocabulary.eos_token_id));
  PAGODA_RETURN_IF_ERROR(
      read_id(file, "tokenizer.ggml.unknown_token_id", vocabulary.unknown_token_id));
  PAGODA_RETURN_IF_ERROR(
      assign_if_present(file.boolean("tokenizer.ggml.add_bos_token"), vocabulary.add_bos_token));
  PAGODA_RETURN_IF_ERROR(
      assign_if_present(file.boolean("tokenizer.ggml.add_eos_token"), vocabulary.add_eos_token));
  PAGODA_RETURN_IF_ERROR(assign_if_present(file.boolean("tokenizer.ggml.add_space_prefix"),
                                           vocabulary.add_space_prefix));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.metaspace, file.string_or("pagoda.tokenizer.metaspace", ""));
  PAGODA_RETURN_IF_ERROR(
      assign_if_present(file.string("tokenizer.chat_template"), vocabulary.chat_template));
  return vocabulary;
}

}  // namespace pagoda
