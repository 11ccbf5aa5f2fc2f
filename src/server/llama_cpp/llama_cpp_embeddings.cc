#include "server/llama_cpp/llama_cpp_embeddings.h"

#include <algorithm>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/pooling/embeddings.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr std::string_view kInputs = "content";
constexpr std::string_view kAlsoInputs = "input";

std::vector<Field> llama_cpp_embedding_table(EmbeddingRequest& request) {
  std::vector<Field> table = embedding_field_table(request);
  const auto inputs = std::ranges::find(table, kAlsoInputs, &Field::name);
  inputs->name = kInputs;
  inputs->aliases = {kAlsoInputs};
  inputs->from = "llama.cpp";
  inputs->required = false;  // since either name will do
  // llama.cpp writes numbers, whatever is asked for.
  std::ranges::find(table, "encoding_format", &Field::name)->target = IgnoredField{};
  return table;
}

ApiResult<EmbeddingRequest> read_llama_cpp_embedding(const std::string& body,
                                                     std::vector<std::string>& unknown_names) {
  EmbeddingRequest request;
  if (auto error = read_body_fields(body, llama_cpp_embedding_table(request), unknown_names))
    return std::move(*error);
  if (request.inputs.empty()) {
    return bad_request(std::string(kInputs), "'content' is required", "missing_required_parameter");
  }
  if (auto error = check_truncation(request.truncate_prompt_tokens)) return std::move(*error);
  return request;
}

}  // namespace

HttpReply handle_llama_cpp_embedding(ApiService& service, const HttpRequest& http_request,
                                     const Wake& wake) {
  auto read = read_logged(service, read_llama_cpp_embedding, http_request.body);
  if (!read.ok()) return {error_response(read.error()), {}};
  EmbeddingLayout layout = {.head = "[",
                            .frame = EmbeddingFrame::kLlamaCpp,
                            .tail = [](const EmbeddingBatch&) { return "]"; }};
  return embed_inputs(service, http_request, *std::move(read), std::move(layout), kInputs, wake);
}

json llama_cpp_embedding_schema() {
  EmbeddingRequest request;
  json schema = fields_schema(llama_cpp_embedding_table(request));
  add_truncation_rule(schema);
  json either = json::array();
  for (const std::string_view name : {kInputs, kAlsoInputs}) {
    either.push_back({{"required", {name}},
                      {"properties", {{std::string(name), {{"not", {{"type", "null"}}}}}}}});
  }
  add_rule(schema, {{"anyOf", std::move(either)}});
  return schema;
}

}  // namespace pagoda
