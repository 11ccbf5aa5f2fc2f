#include "server/pooling/embeddings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "serving/cut_prompt.h"
#include "serving/pooling/pooling_prompt.h"

namespace pagoda {
namespace {

using nlohmann::json;

EmbeddingLayout openai_layout(std::string model_name, bool is_base64) {
  return {.head = R"({"object":"list","data":[)",
          .frame = EmbeddingFrame::kOpenAi,
          .is_base64 = is_base64,
          .tail = [model_name = std::move(model_name)](const EmbeddingBatch& batch) {
            return fmt::format(R"(],"model":{},"usage":{}}})", json_text(json(model_name)),
                               json_text(usage_json(batch)));
          }};
}

// Resolves how inputs are encoded. The EmbeddingFormat decides what the request leaves open.
ApiResult<InputEncoding> resolve_encoding(const ServedModel& model,
                                          const EmbeddingRequest& request) {
  const auto prompt = find_prompt(model, request.prompt_name);
  if (!prompt.ok()) return api_error(prompt.status());
  const auto most = resolve_cut(model, request.truncate_prompt_tokens);
  if (!most.ok()) return api_error(most.status());
  InputEncoding encoding = {.add_special_tokens = request.add_special_tokens,
                            .prompt = *prompt,
                            .cut_to = model.embedding_format.max_tokens,
                            .keeps_end = most->has_value()};
  if (*most) encoding.cut_to = std::min(**most, most_embedded(model));
  return encoding;
}

}  // namespace

HttpReply embed_inputs(ApiService& service, const HttpRequest& http_request,
                       EmbeddingRequest request, EmbeddingLayout layout,
                       std::string_view inputs_field, const Wake& wake) {
  if (auto error = check_embedding(service, request.model, request.dimensions))
    return {error_response(*error), {}};
  const auto encoding = resolve_encoding(service.model, request);
  if (!encoding.ok()) return {error_response(encoding.error()), {}};
  auto prompts = encode_inputs(service.model, request.inputs, *encoding, inputs_field);
  if (!prompts.ok()) return {error_response(api_error(prompts.status())), {}};
  return start_embeddings(service,
                          {.batch = {.prompts = *std::move(prompts),
                                     .dimensions = request.dimensions,
                                     .priority = request.priority,
                                     .cache_owner = http_request.client,
                                     .cache_salt = std::move(request.cache_salt)},
                           .origin = http_request.origin(),
                           .layout = std::move(layout)},
                          wake);
}

HttpReply handle_embeddings(ApiService& service, const HttpRequest& http_request,
                            const Wake& wake) {
  auto read = read_logged(service, read_embedding_request, http_request.body);
  if (!read.ok()) return {error_response(read.error()), {}};
  EmbeddingLayout layout = openai_layout(answered_name(service, read->model), read->is_base64);
  return embed_inputs(service, http_request, *std::move(read), std::move(layout), "input", wake);
}

}  // namespace pagoda
