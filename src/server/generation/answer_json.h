// The parts that completions and chat write alike: ids, usage, stop reasons, events.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "server/base/api_error.h"
#include "server/generation/generation_group.h"

namespace pagoda {

// The head of an answer: all of a stream's chunks share it.
struct AnswerIdentity {
  std::string id;            // "cmpl-..." or "chatcmpl-..."
  std::string model;         // as asked for
  std::int64_t created = 0;  // seconds since 1970

  static AnswerIdentity make(std::string_view prefix, std::string model);
  nlohmann::json head(std::string_view object) const;
};

// Returns 32 of them, for an id.
std::string random_hex_digits();

nlohmann::json usage_json(const Usage& usage);

// Returns the reason's name; null while it runs.
nlohmann::json finish_reason_json(FinishReason reason);
// Returns the stop string or the id from stop_token_ids that ended it; null for anything else, as
// in vLLM.
nlohmann::json stop_reason_json(const TextPiece& piece, const std::vector<int>& eos_token_ids);

// Returns one server-sent event.
std::string sse_event(const nlohmann::json& data);
std::string sse_error_event(const ApiError& error);
// Returns an error's event and the mark of the end.
std::string sse_last_words(const ApiError& error);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace pagoda
