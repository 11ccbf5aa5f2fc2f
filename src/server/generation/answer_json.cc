#include "server/generation/answer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/clock.h"
#include "core/json.h"
#include "core/version.h"
#include "server/base/json_body.h"

namespace pagoda {

using nlohmann::json;

namespace {

// Returns OpenAI's name for what computed an answer: the release and the commit.
const std::string& system_fingerprint() {
  static const std::string fingerprint =
      fmt::format("pagoda-{}{}{}", version(), commit().empty() ? "" : "-", commit());
  return fingerprint;
}

}  // namespace

AnswerIdentity AnswerIdentity::make(std::string_view prefix, std::string model) {
  return {std::string(prefix) + random_hex_digits(), std::move(model),
          unix_time_ns() / 1'000'000'000};
}

std::string random_hex_digits() {
  std::random_device device;
  std::string digits;
  for (int i = 0; i < 4; ++i) digits += fmt::format("{:08x}", device());
  return digits;
}

json AnswerIdentity::head(std::string_view object) const {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", model},
          {"system_fingerprint", system_fingerprint()}};
}

json usage_json(const Usage& usage, int num_thought_tokens) {
  return {{"prompt_tokens", usage.num_prompt_tokens},
          {"completion_tokens", usage.num_completion_tokens},
          {"total_tokens", usage.num_prompt_tokens + usage.num_completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.num_cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", num_thought_tokens}}}};
}

json finish_reason_json(FinishReason reason) {
  if (reason == FinishReason::kNone) return nullptr;
  return finish_reason_name(reason);
}

json stop_reason_json(const TextPiece& piece, const std::vector<int>& eos_token_ids) {
  if (piece.stop_string) return *piece.stop_string;
  if (!piece.stop_token_id) return nullptr;
  const bool is_eos = std::find(eos_token_ids.begin(), eos_token_ids.end(), *piece.stop_token_id) !=
                      eos_token_ids.end();
  return is_eos ? json(nullptr) : json(*piece.stop_token_id);
}

std::string sse_event(const json& data) {
  return fmt::format("data: {}\n\n", json_text(data));
}

std::string sse_event(const OrderedJson& data) {
  return fmt::format("data: {}\n\n", json_text(data));
}

std::string sse_error_event(const ApiError& error) {
  return fmt::format("data: {}\n\n", error_body(error));
}

std::string sse_last_words(const ApiError& error) {
  return sse_error_event(error) + std::string(kSseDone);
}

}  // namespace pagoda
