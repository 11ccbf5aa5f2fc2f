// A body for every POST endpoint. An input that begins like a JSON list or object is the body
// itself; any other input draws a body from the field table by field_grammar.h.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "server/anthropic/messages_request.h"
#include "server/base/json_body.h"
#include "server/chat/chat_request.h"
#include "server/information/tokenize_request.h"
#include "server/llama_cpp/completion_request.h"
#include "server/llama_cpp/infill_request.h"
#include "server/ollama/ollama_request.h"
#include "server/openai/completion_request.h"
#include "server/pooling/embedding_request.h"
#include "server/pooling/score_request.h"
#include "server/responses/response_request.h"
#include "tests/fuzz/field_grammar.h"

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
  std::size_t num_stop_bytes = 0;
  for (const std::string& stop : fields.stop) {
    PAGODA_CHECK(!stop.empty(), "stop strings are not empty");
    num_stop_bytes += stop.size();
  }
  PAGODA_CHECK(num_stop_bytes <= kMaxStopBytes, "stop strings are short together");
  const TokenRuleFields& rules = fields.token_rules;
  PAGODA_CHECK(rules.logit_bias.size() <= kMaxLogitBiases, "biases are few");
  PAGODA_CHECK(!rules.allowed_token_ids || rules.allowed_token_ids->size() <= kMaxAllowedTokens,
               "allowed tokens are few");
  PAGODA_CHECK(rules.dry_sequence_breakers.size() <= kMaxSequenceBreakers, "breakers are few");
}

void check_response(RequestJson body, std::vector<std::string>& unknown_names) {
  auto response = read_response_fields(std::move(body), unknown_names);
  if (!response.ok()) return check_error(response.error());
  auto& request = *response;
  check_generation(request.chat.generation);
  check_bounds(response_field_table(request));
  if (auto error = resolve_messages(RequestJson::array(), request)) check_error(*error);
}

void check_ollama(const RequestJson& body, std::vector<std::string>& unknown_names) {
  auto chat = read_ollama_chat_request(body, unknown_names);
  if (chat.ok()) {
    PAGODA_CHECK(chat->top_logprobs <= kMaxLogprobs, "top_logprobs is in range");
    check_generation(chat->generation);
  } else {
    check_error(chat.error());
  }
  auto generate = read_ollama_generate_request(body, unknown_names);
  if (generate.ok()) {
    check_generation(generate->chat.generation);
    check_bounds(ollama_generate_field_table(*generate));
  } else {
    check_error(generate.error());
  }
}

void read_as_generation(const std::string& body) {
  std::vector<std::string> unknown_names;
  auto completion = read_completion_request(body, unknown_names);
  if (completion.ok()) {
    auto& request = *completion;
    PAGODA_CHECK(!request.prompts.empty() && request.prompts.size() <= kMaxPrompts,
                 "there are prompts");
    check_generation(request.generation);
    check_bounds(completion_field_table(request));
  } else {
    check_error(completion.error());
  }
  auto chat = read_chat_request(body, unknown_names);
  if (chat.ok()) {
    auto& request = *chat;
    PAGODA_CHECK(request.prompt.messages_json.starts_with("[{"), "there are messages");
    PAGODA_CHECK(request.top_logprobs <= kMaxLogprobs, "top_logprobs is in range");
    check_generation(request.generation);
    check_bounds(chat_field_table(request));
  } else {
    check_error(chat.error());
  }
  if (auto parsed = parse_json_body(body); parsed.ok()) {
    check_ollama(*parsed, unknown_names);
    check_response(*std::move(parsed), unknown_names);
  }
  auto infill = read_infill_request(body, unknown_names);
  if (infill.ok()) {
    PAGODA_CHECK(infill->texts.files.size() <= kMaxInfillFiles, "files are few");
    check_generation(infill->fields.generation);
  } else {
    check_error(infill.error());
  }
  auto continued = read_llama_cpp_completion(body, unknown_names);
  if (continued.ok()) {
    PAGODA_CHECK(continued->prompts.size() == 1, "there is one prompt");
    check_generation(continued->fields.generation);
  } else {
    check_error(continued.error());
  }
  auto messages = read_messages_request(body, /*generates=*/true, unknown_names);
  if (messages.ok()) {
    auto& request = *messages;
    PAGODA_CHECK(request.chat.prompt.messages_json.starts_with("[{"), "there are messages");
    check_generation(request.chat.generation);
    check_bounds(messages_field_table(request));
  } else {
    check_error(messages.error());
  }
}

void read_as_texts(const std::string& body) {
  std::vector<std::string> unknown_names;
  auto embedding = read_embedding_request(body, unknown_names);
  if (embedding.ok()) {
    auto& request = *embedding;
    PAGODA_CHECK(!request.inputs.empty() && request.inputs.size() <= kMaxInputs,
                 "there are inputs");
    PAGODA_CHECK(request.truncate_prompt_tokens != 0, "some tokens stay");
    check_bounds(embedding_field_table(request));
  } else {
    check_error(embedding.error());
  }
  auto score = read_score_request(body, unknown_names);
  if (score.ok()) {
    const std::size_t num_firsts = score->firsts.size(), num_seconds = score->seconds.size();
    PAGODA_CHECK(num_seconds > 0 && (num_firsts == 1 || num_firsts == num_seconds),
                 "each text has another one");
    check_bounds(score_field_table(*score));
  } else {
    check_error(score.error());
  }
  auto rerank = read_rerank_request(body, unknown_names);
  if (rerank.ok()) {
    PAGODA_CHECK(!rerank->documents.empty() && rerank->documents.size() <= kMaxScoredTexts,
                 "there are documents");
    check_bounds(rerank_field_table(*rerank));
  } else {
    check_error(rerank.error());
  }
  auto tokenize = read_tokenize_request(body, unknown_names);
  if (tokenize.ok()) {
    auto& request = *tokenize;
    check_bounds(tokenize_field_table(request));
  } else {
    check_error(tokenize.error());
  }
  auto detokenize = read_detokenize_request(body, unknown_names);
  if (detokenize.ok()) {
    auto& request = *detokenize;
    check_bounds(detokenize_field_table(request));
  } else {
    check_error(detokenize.error());
  }
}

void read_all(const std::string& body) {
  read_as_generation(body);
  read_as_texts(body);
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && (data[0] == '{' || data[0] == '[')) {
    pagoda::read_all(std::string(reinterpret_cast<const char*>(data), size));
    return 0;
  }
  FuzzedDataProvider draws(data, size);
  pagoda::read_all(pagoda::draw_body(draws));
  return 0;
}
