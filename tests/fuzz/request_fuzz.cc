// Any bytes as the body of every POST endpoint.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/json_body.h"
#include "server/tokenize_request.h"

namespace pagoda {
namespace {

void check_error(const ApiError& error) {
  PAGODA_CHECK(error.status == 400 && !error.message.empty(), "a refusal says why");
  PAGODA_CHECK(find_invalid_utf8(error_body(error)) == std::string_view::npos,
               "a refusal is JSON text");
}

void check_generation(const GenerationFields& fields) {
  const SamplingParams params =
      to_sampling_params(fields, {}, std::nullopt, fields.max_tokens.value_or(1));
  PAGODA_CHECK(params.n >= 1 && params.n <= kMaxSamples, "n is in range");
  PAGODA_CHECK(params.temperature >= 0 && params.top_p > 0 && params.top_p <= 1,
               "sampling is in range");
  PAGODA_CHECK(params.top_k >= 0 && params.min_tokens <= params.max_tokens, "counts are in range");
  PAGODA_CHECK(fields.stop.size() <= kMaxStopStrings, "stop strings are few");
  for (const std::string& stop : fields.stop)
    PAGODA_CHECK(!stop.empty(), "stop strings are not empty");
}

void read_all(const std::string& body) {
  std::vector<std::string> unknown_names;
  const auto completion = read_completion_request(body, unknown_names);
  if (const auto* request = std::get_if<CompletionRequest>(&completion)) {
    PAGODA_CHECK(!request->prompts.empty() && request->prompts.size() <= kMaxPrompts,
                 "there are prompts");
    check_generation(request->generation);
  } else {
    check_error(std::get<ApiError>(completion));
  }
  const auto chat = read_chat_request(body, unknown_names);
  if (const auto* request = std::get_if<ChatRequest>(&chat)) {
    PAGODA_CHECK(request->prompt.messages_json.starts_with("[{"), "there are messages");
    PAGODA_CHECK(request->top_logprobs <= kMaxLogprobs, "top_logprobs is in range");
    check_generation(request->generation);
  } else {
    check_error(std::get<ApiError>(chat));
  }
  const auto tokenize = read_tokenize_request(body, unknown_names);
  if (const auto* error = std::get_if<ApiError>(&tokenize)) check_error(*error);
  const auto detokenize = read_detokenize_request(body, unknown_names);
  if (const auto* error = std::get_if<ApiError>(&detokenize)) check_error(*error);
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pagoda::read_all(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
