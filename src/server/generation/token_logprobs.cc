#include "server/generation/token_logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "core/utf8.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Replaces -inf, which JSON does not have, by the number that vLLM writes.
float finite(float logprob) {
  return std::max(logprob, -9999.0f);
}

// Returns a token's bytes; "" for an id that only the model has, as in a padded vocabulary.
std::string bytes_of(const Tokenizer& tokenizer, int token_id) {
  auto bytes = tokenizer.token_bytes(token_id);
  return bytes.ok() ? *std::move(bytes) : std::string();
}

json bytes_json(std::string_view bytes) {
  json list = json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

}  // namespace

std::string TokenNaming::name(int token_id, std::string_view escape_prefix) const {
  if (as_token_ids) return fmt::format("token_id:{}", token_id);
  std::string bytes = bytes_of(tokenizer, token_id);
  if (find_invalid_utf8(bytes) == std::string_view::npos) return bytes;
  std::string escaped(escape_prefix);
  for (const char byte : bytes)
    escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

void CompletionLogprobs::append(int token_id, const std::optional<TokenLogprobs>& logprobs) {
  tokens_.push_back(naming_.name(token_id, "bytes:"));
  logprobs_.push_back(logprobs);
  text_offsets_.push_back(text_length_);
  text_length_ += static_cast<int>(num_characters(bytes_of(naming_.tokenizer, token_id)));
}

json CompletionLogprobs::take() {
  json token_logprobs = json::array();
  json top_logprobs = json::array();
  for (std::size_t i = 0; i < logprobs_.size(); ++i) {
    if (!logprobs_[i]) {
      token_logprobs.push_back(nullptr);
      top_logprobs.push_back(nullptr);
      continue;
    }
    token_logprobs.push_back(finite(logprobs_[i]->chosen.logprob));
    json top = {{tokens_[i], finite(logprobs_[i]->chosen.logprob)}};
    for (const TokenLogprob& token : logprobs_[i]->top) {
      // Two tokens may have the same name. The likelier one comes first and keeps it.
      top.emplace(naming_.name(token.token_id, "bytes:"), finite(token.logprob));
    }
    top_logprobs.push_back(std::move(top));
  }
  json taken = {{"tokens", tokens_},
                {"token_logprobs", std::move(token_logprobs)},
                {"top_logprobs", std::move(top_logprobs)},
                {"text_offset", text_offsets_}};
  tokens_.clear();
  logprobs_.clear();
  text_offsets_.clear();
  return taken;
}

json chat_logprobs_content(const TokenNaming& naming, const std::vector<TokenLogprobs>& logprobs) {
  const auto entry = [&](const TokenLogprob& token) {
    return json{{"token", naming.name(token.token_id, "")},
                {"logprob", finite(token.logprob)},
                {"bytes", bytes_json(bytes_of(naming.tokenizer, token.token_id))}};
  };
  json content = json::array();
  for (const TokenLogprobs& place : logprobs) {
    json top = json::array();
    for (const TokenLogprob& token : place.top) top.push_back(entry(token));
    content.push_back(entry(place.chosen));
    content.back()["top_logprobs"] = std::move(top);
  }
  return content;
}

json prompt_logprobs_json(const TokenNaming& naming,
                          const std::vector<std::optional<TokenLogprobs>>& logprobs) {
  json list = json::array();
  for (const auto& place : logprobs) {
    if (!place) {
      list.push_back(nullptr);
      continue;
    }
    json tokens = json::object();
    const auto add = [&](const TokenLogprob& token, int rank) {
      tokens.emplace(std::to_string(token.token_id),
                     json{{"logprob", finite(token.logprob)},
                          {"rank", rank},
                          {"decoded_token", naming.name(token.token_id, "bytes:")}});
    };
    add(place->chosen, place->rank);
    for (std::size_t i = 0; i < place->top.size(); ++i) add(place->top[i], static_cast<int>(i) + 1);
    list.push_back(std::move(tokens));
  }
  return list;
}

}  // namespace pagoda
