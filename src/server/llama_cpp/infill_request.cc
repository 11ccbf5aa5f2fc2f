#include "server/llama_cpp/infill_request.h"

#include <fmt/format.h>

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
  std::vector<Field> table = llama_cpp_field_table(request.fields);
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
  // How far a line is indented is left to the model.
  table.push_back({.name = "n_indent", .target = IgnoredField{}, .from = "llama.cpp"});
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
  if (auto error =
          read_llama_cpp_body(body, infill_field_table(sent), sent.request.fields, unknown_names))
    return std::move(*error);
  sent.request.texts.prefix += sent.prompt;
  return std::move(sent.request);
}

}  // namespace pagoda
