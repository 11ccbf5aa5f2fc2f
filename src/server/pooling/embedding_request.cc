#include "server/pooling/embedding_request.h"

#include <fmt/format.h>

#include "core/json.h"
#include "server/fields/generation_fields.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxPromptNameChars = 256;

std::string_view inputs_schema() {
  static const std::string schema = prompts_schema(kMaxInputs);
  return schema;
}

std::optional<ApiError> read_encoding_format(const RequestJson& value, EmbeddingRequest& request) {
  if (!value.is_string()) return wrong_type("encoding_format", "a string", value);
  const auto& format = value.get_ref<const std::string&>();
  request.is_base64 = format == "base64";
  if (request.is_base64 || format == "float") return {};
  return bad_request("encoding_format",
                     fmt::format("'encoding_format': expected float or base64, got {}", format),
                     "out_of_range");
}

// Adds other servers' fields that have no effect on embeddings here. known_fields.h has those for
// generated text.
void add_fields_of_others(std::vector<Field>& table) {
  add_names_of_requests(table);
  const auto refuse = [&](std::string_view from, std::string_view name, std::string_view neutral,
                          std::string_view instead = {}) {
    table.push_back({.name = name, .target = RefusedField{neutral, instead}, .from = from});
  };
  constexpr std::string_view kNone = R"([false, [], {}, ""])";
  refuse("vLLM", "messages", kNone, "the text that /apply-template makes of them");
  refuse("vLLM", "normalize", "[true]", "dimensions, which normalises where it cuts");
  refuse("vLLM", "use_activation", "[true]");
  refuse("vLLM", "embed_dtype", R"(["float32"])");
  refuse("vLLM", "endianness", R"(["native", "little"])");
  refuse("vLLM", "truncation_side", R"(["left"])");
  refuse("vLLM", "mm_processor_kwargs", kNone);
  refuse("SGLang", "lora_path", kNone);
  refuse("llama.cpp", "embd_normalize", "[2]");
}

}  // namespace

Field dimensions_field(std::optional<int>& dimensions, std::string_view from) {
  return {.name = "dimensions",
          .target = &dimensions,
          .range = {.minimum = 1},
          .format = kEmbeddingSizeFormat,
          .description = "Leaves that many numbers of each embedding, the first ones, of length 1.",
          .from = from};
}

std::vector<Field> embedding_field_table(EmbeddingRequest& request) {
  std::vector<Field> table = {
      model_field(request.model),
      {.name = "input",
       .target = CustomField{[&request](std::string_view name, const RequestJson& value) {
                               return read_prompts(name, value, kMaxInputs, request.inputs);
                             },
                             inputs_schema()},
       .description = "Text, a list of texts, a list of token ids, or a list of those.",
       .required = true},
      custom_field("encoding_format", request, read_encoding_format,
                   R"({"enum": ["float", "base64"]})"),
      dimensions_field(request.dimensions, ""),
      {.name = "prompt_name",
       .target = &request.prompt_name,
       .size = {.max_chars = kMaxPromptNameChars},
       .format = kPromptNameFormat,
       .description = "Names one of the checkpoint's prompts, which is put before each text; "
                      "otherwise its default one is.",
       .from = "sentence-transformers"},
      truncation_field(
          request.truncate_prompt_tokens,
          "Leaves the last ones of each input's tokens; -1: as many as the context has."),
      add_special_tokens_field(request.add_special_tokens),
      priority_field(request.priority),
      cache_salt_field(request.cache_salt)};
  add_fields_of_others(table);
  return table;
}

nlohmann::json embedding_request_schema() {
  EmbeddingRequest request;
  nlohmann::json schema = fields_schema(embedding_field_table(request));
  add_truncation_rule(schema);
  return schema;
}

ApiResult<EmbeddingRequest> read_embedding_request(const std::string& body,
                                                   std::vector<std::string>& unknown_names) {
  EmbeddingRequest request;
  if (auto error = read_body_fields(body, embedding_field_table(request), unknown_names))
    return std::move(*error);
  if (auto error = check_truncation(request.truncate_prompt_tokens)) return std::move(*error);
  return request;
}

}  // namespace pagoda
