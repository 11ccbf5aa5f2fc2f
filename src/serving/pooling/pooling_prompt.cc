#include "serving/pooling/pooling_prompt.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "serving/cut_prompt.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

Status no_tokenizer(const ServedModel& model, std::string_view field) {
  return invalid_argument("{}", model.no_tokenizer.message()).of_field(field, "no_tokenizer");
}

Result<std::vector<int>> encode_input(const ServedModel& model, const PromptInput& input,
                                      const InputEncoding& encoding, std::string_view field) {
  const EngineLimits& limits = model.engine->limits();
  PromptInput given = input;
  if (auto* text = std::get_if<std::string>(&given)) {
    if (!model.tokenizer) return no_tokenizer(model, field);
    text->insert(0, encoding.prompt);
  }
  std::vector<int> ids;
  if (encoding.cut_to) {
    PAGODA_ASSIGN_OR_RETURN(ids, encode_cut(model, given, encoding.add_special_tokens,
                                            {*encoding.cut_to, encoding.keeps_end}, field));
  } else if (const auto* text = std::get_if<std::string>(&given)) {
    PAGODA_ASSIGN_OR_RETURN(
        ids, token_ids_if_near(model, *text, limits.max_model_len,
                               {.add_special_tokens = encoding.add_special_tokens}, field));
  } else {
    ids = std::get<std::vector<int>>(std::move(given));
  }
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, limits.max_model_len, field));
  const int most = most_embedded(model);
  if (std::ssize(ids) > most) return too_long_prompt(most, field, std::to_string(ids.size()));
  return ids;
}

// Encodes two texts as the pair that the tokenizer builds.
Result<std::vector<int>> encode_joined_pair(const ServedModel& model, const TextPair& pair,
                                            std::optional<int> most, std::string_view field) {
  const EngineLimits& limits = model.engine->limits();
  const auto parts = model.tokenizer->pair_parts();
  if (!parts.ok()) return parts.status().of_field(field);
  const auto encode = [&](std::string_view text) {
    constexpr EncodeOptions kBare = {.add_special_tokens = false};
    return most ? tokenize_text(model, text, kBare.add_special_tokens, field)
                : token_ids_if_near(model, text, limits.max_model_len, kBare, field);
  };
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> query, encode(pair.query));
  PAGODA_ASSIGN_OR_RETURN(std::vector<int> document, encode(pair.document));
  const std::ptrdiff_t num_others = std::ssize(parts->before) + std::ssize(query) +
                                    std::ssize(parts->between) + std::ssize(parts->after);
  if (most && num_others + std::ssize(document) > *most)
    document.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(*most - num_others, 0)));
  std::vector<int> ids = parts->before;
  for (const std::vector<int>& part : {query, parts->between, document, parts->after})
    ids.insert(ids.end(), part.begin(), part.end());
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, most.value_or(limits.max_model_len), field));
  return ids;
}

}  // namespace

int most_embedded(const ServedModel& model) {
  const int max_model_len = model.engine->limits().max_model_len;
  return std::min(max_model_len, model.embedding_format.max_tokens.value_or(max_model_len));
}

Result<std::string_view> find_prompt(const ServedModel& model,
                                     const std::optional<std::string>& name) {
  const EmbeddingFormat& format = model.embedding_format;
  if (!name) return std::string_view(format.default_prompt);
  const auto found = format.prompts.find(*name);
  if (found != format.prompts.end()) return std::string_view(found->second);
  if (format.prompts.empty()) {
    return invalid_argument("'prompt_name': this model has no prompts")
        .of_field("prompt_name", "out_of_range");
  }
  std::vector<std::string_view> names;
  for (const auto& [each, text] : format.prompts) names.push_back(each);
  return invalid_argument("'prompt_name': expected {}, got {}", fmt::join(names, " or "), *name)
      .of_field("prompt_name", "out_of_range");
}

Result<std::vector<std::vector<int>>> encode_inputs(const ServedModel& model,
                                                    const std::vector<PromptInput>& inputs,
                                                    const InputEncoding& encoding,
                                                    std::string_view field) {
  std::vector<std::vector<int>> prompts;
  prompts.reserve(inputs.size());
  for (const PromptInput& input : inputs) {
    PAGODA_ASSIGN_OR_RETURN(prompts.emplace_back(), encode_input(model, input, encoding, field));
  }
  return prompts;
}

Result<std::vector<int>> encode_pair(const ServedModel& model, const TextPair& pair,
                                     std::optional<int> most, std::string_view field) {
  if (!model.tokenizer) return no_tokenizer(model, field);
  const std::string& prompt = model.score_format->prompt;
  if (prompt.empty()) return encode_joined_pair(model, pair, most, field);
  if (most) {
    return invalid_argument(
               "'truncate_prompt_tokens': this model has a prompt of its own for pairs, which "
               "can't be cut")
        .of_field("truncate_prompt_tokens", "unsupported_parameter");
  }
  const std::string text = scored_prompt(prompt, pair.query, pair.document);
  const EngineLimits& limits = model.engine->limits();
  PAGODA_ASSIGN_OR_RETURN(
      std::vector<int> ids,
      token_ids_if_near(model, text, limits.max_model_len, {.add_special_tokens = true}, field));
  PAGODA_RETURN_IF_ERROR(check_token_ids(limits, ids, limits.max_model_len, field));
  return ids;
}

}  // namespace pagoda
