#include "server/llama_cpp/completion_request.h"

#include "core/json.h"
#include "server/fields/known_fields.h"
#include "server/fields/prompt_fields.h"

namespace pagoda {
namespace {

std::vector<Field> llama_cpp_completion_table(LlamaCppCompletionRequest& request) {
  static const std::string schema = prompts_schema(/*most=*/1);
  std::vector<Field> table = llama_cpp_field_table(request.fields);
  table.push_back(
      {.name = "prompt",
       .target = CustomField{[&request](std::string_view name, const RequestJson& value) {
                               return read_prompts(name, value, /*most=*/1, request.prompts);
                             },
                             schema},
       .description = "A text, or a list of token ids.",
       .required = true});
  add_known_fields(table, FieldPlace::kCompletions);
  return table;
}

}  // namespace

ApiResult<LlamaCppCompletionRequest> read_llama_cpp_completion(
    const std::string& body, std::vector<std::string>& unknown_names) {
  LlamaCppCompletionRequest request;
  if (auto error = read_llama_cpp_body(body, llama_cpp_completion_table(request), request.fields,
                                       unknown_names))
    return std::move(*error);
  return request;
}

nlohmann::json llama_cpp_completion_schema() {
  LlamaCppCompletionRequest request;
  return generation_schema(llama_cpp_completion_table(request));
}

}  // namespace pagoda
