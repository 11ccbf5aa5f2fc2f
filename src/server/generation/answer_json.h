// The parts that completions and chat write alike: ids, usage, stop reasons, events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ordered_json.h"
#include "server/base/api_error.h"
#include "server/generation/generation_group.h"

namespace pagoda {

// The head of an answer, which all of a stream's chunks repeat.
struct AnswerIdentity {
  std::string id;            // "cmpl-..." or "chatcmpl-..."
  std::string model;         // the model's name in answers
  std::int64_t created = 0;  // seconds since 1970

  static AnswerIdentity make(std::string_view prefix, std::string model);
  nlohmann::json head(std::string_view object) const;
};

// Returns 32 random hexadecimal digits.
std::string random_hex_digits();

// Returns OpenAI's usage. num_thought_tokens: how many of the answer's tokens are thoughts.
nlohmann::json usage_json(const Usage& usage, int num_thought_tokens = 0);

// Returns the finish reason's name; null while the answer is being generated.
nlohmann::json finish_reason_json(FinishReason reason);
// Returns the stop string, or the id from stop_token_ids, that ended the answer; null for any other
// end, as in vLLM.
nlohmann::json stop_reason_json(const TextPiece& piece, const std::vector<int>& eos_token_ids);

// Returns one server-sent event.
std::string sse_event(const nlohmann::json& data);
std::string sse_event(const OrderedJson& data);
std::string sse_error_event(const ApiError& error);
// Returns an error as an event, followed by kSseDone.
std::string sse_last_words(const ApiError& error);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace pagoda
