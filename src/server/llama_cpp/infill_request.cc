#include "server/llama_cpp/infill_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "server/base/request_json.h"
#include "server/fields/known_fields.h"

namespace pagoda {
namespace {

// The parts of a request as they are sent.
struct SentInfill {
  InfillRequest request;
  std::string prompt;  // the text before the cursor in its line
};

std::optional<ApiError> read_files(const RequestJson& value, SentInfill& sent) {
  if (!value.is_array()) return wrong_type("input_extra", "a list of objects", value);
  if (value.size() > kMaxInfillFiles) {
    return bad_request("input_extra",
                       fmt::format("'input_extra': expected at most {} items, got {}",
                                   kMaxInfillFiles, value.size()),
                       "out_of_range");
  }
  for (const RequestJson& item : value) {
    const std::string place = fmt::format("input_extra[{}]", sent.request.texts.files.size());
    FillInFile file;
    const FieldSize size = {.max_chars = kMaxTextChars};
    if (auto error = read_inner_fields(
            item,
            {{.name = "filename", .target = &file.filename, .size = size},
             {.name = "text", .target = &file.text, .size = size, .required = true}},
            place)) {
      error->param = "input_extra";
      return error;
    }
    sent.request.texts.files.push_back(std::move(file));
  }
  return {};
}

std::string_view files_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "maxItems": {}, "items": {{"type": "object", "required": ["text"],
          "properties": {{"text": {{"type": "string"}}, "filename": {{"type": ["string", "null"]}}}}}}}})",
      kMaxInfillFiles);
  return schema;
}

std::vector<Field> infill_field_table(SentInfill& sent) {
  InfillRequest& request = sent.request;
  std::vector<Field> table = generation_field_table(request.generation, /*fewest_tokens=*/1);
  const auto n_predict = std::ranges::find(table, "n_predict", &Field::name);
  n_predict->target = &request.generation.n_predict;
  n_predict->range = {.minimum = -1, .saturates = true};
  n_predict->description =
      "max_tokens, -1 for the rest of the context, or 0 to read the prompt and answer nothing.";
  const FieldSize text = {.max_chars = kMaxTextChars};
  table.push_back({.name = "input_prefix",
                   .target = &request.texts.prefix,
                   .size = text,
                   .description = "The text before the cursor; of a long one, its end counts.",
                   .from = "llama.cpp"});
  table.push_back({.name = "input_suffix",
                   .target = &request.texts.suffix,
                   .size = text,
                   .description = "The text behind the cursor; of a long one, its beginning.",
                   .from = "llama.cpp"});
  table.push_back({.name = "prompt",
                   .target = &sent.prompt,
                   .size = text,
                   .description = "Stands behind input_prefix.",
                   .from = "llama.cpp"});
  table.push_back(custom_field("input_extra", sent, read_files, files_schema()));
  table.back().description = "Other texts, the most useful last.";
  table.back().from = "llama.cpp";
  table.push_back({.name = "response_fields",
                   .target = &request.response_fields,
                   .size = {.max_chars = 256, .min_chars = 1, .max_items = 64},
                   .description = "Paths of the fields that the answer is to have.",
                   .from = "llama.cpp"});
  // These are ignored: answers do not depend on time, samplers have one order, and the model
  // decides how far a line is indented.
  for (const char* name : {"t_max_predict_ms", "t_max_prompt_ms", "samplers", "n_indent"})
    table.push_back({.name = name, .target = IgnoredField{}, .from = "llama.cpp"});
  add_known_fields(table, FieldPlace::kCompletions);
  return table;
}

}  // namespace

nlohmann::json infill_request_schema() {
  SentInfill sent;
  const std::vector<Field> table = infill_field_table(sent);
  return generation_schema(table);
}

ApiResult<InfillRequest> read_infill_request(const std::string& body,
                                             std::vector<std::string>& unknown_names) {
  SentInfill sent;
  GenerationFields& fields = sent.request.generation;
  if (auto error = read_generation_body(body, infill_field_table(sent), fields, unknown_names))
    return std::move(*error);
  sent.request.texts.prefix += sent.prompt;
  // An answer of /infill holds one text and nothing else.
  fields.sampling.n = 1;
  fields.echo = false;
  fields.prompt_logprobs.reset();
  return std::move(sent.request);
}

}  // namespace pagoda
