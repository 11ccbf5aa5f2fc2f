#include "serving/gguf_text.h"

#include <utility>

#include "core/log.h"
#include "core/utf8.h"
#include "model/gguf/gguf_tokens.h"
#include "weights/printable.h"

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

// Requires merges if there are tokens of several characters, because BPE without merges would cut a
// text into single characters.
Status check_merges(const GgufVocabulary& vocabulary) {
  if (vocabulary.model == "llama" || !vocabulary.merges.empty()) return ok_status();
  constexpr int kPlain = 1;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (vocabulary.token_types[id] != kPlain || num_characters(token) < 2) continue;
    return data_loss(
        "[gguf] key tokenizer.ggml.merges: expected the merges that make tokens such as '{}', but "
        "the file has none; convert the model again",
        printable(token));
  }
  return ok_status();
}

void tell_missing_cut(const GgufVocabulary& vocabulary) {
  if (vocabulary.model != "gpt2" || !vocabulary.pre.empty()) return;
  log_warning(
      "[gguf] key tokenizer.ggml.pre is missing: texts are cut into words as by 'default', which "
      "gives some models other tokens than they were trained with; convert the model again");
}

}  // namespace

Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  PAGODA_ASSIGN_OR_RETURN(vocabulary.model_name, file.string_or("general.name", ""));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.model, file.string("tokenizer.ggml.model"));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.pre, file.string_or("tokenizer.ggml.pre", ""));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string_view> tokens,
                          file.strings("tokenizer.ggml.tokens"));
  vocabulary.tokens = copies(tokens);
  PAGODA_RETURN_IF_ERROR(
      assign_if_present(file.numbers("tokenizer.ggml.scores"), vocabulary.scores));
  const int num_tokens = static_cast<int>(tokens.size());
  PAGODA_ASSIGN_OR_RETURN(GgufTokens kinds, read_gguf_tokens(file, num_tokens));
  vocabulary.token_types = std::move(kinds.types);
  std::vector<std::string_view> merges;
  PAGODA_RETURN_IF_ERROR(assign_if_present(file.strings("tokenizer.ggml.merges"), merges));
  vocabulary.merges = copies(merges);
  PAGODA_RETURN_IF_ERROR(check_merges(vocabulary));
  tell_missing_cut(vocabulary);
  const auto read_id = [&](std::string_view key) {
    return read_gguf_token_id(file, key, num_tokens);
  };
  PAGODA_ASSIGN_OR_RETURN(vocabulary.bos_token_id, read_id("tokenizer.ggml.bos_token_id"));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.eos_token_id, read_id("tokenizer.ggml.eos_token_id"));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.unknown_token_id, read_id("tokenizer.ggml.unknown_token_id"));
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
