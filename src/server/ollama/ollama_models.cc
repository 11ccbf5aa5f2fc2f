#include "server/ollama/ollama_models.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/version.h"
#include "server/base/answer_schema.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/ollama/ollama.h"
#include "server/ollama/ollama_answers.h"

namespace pagoda {
namespace {

using nlohmann::json;

// A version whose API has all that is answered here: tools, thoughts, structured outputs and
// log-probabilities.
constexpr const char* kOllamaVersion = "0.12.11";

struct ModelRequest {
  std::string model, name;  // either of them; older clients send `name`
};

std::vector<Field> model_request_table(ModelRequest& request) {
  const auto name_field = [](std::string_view name, std::string* target) {
    return Field{.name = name,
                 .target = target,
                 .size = {.max_chars = kMaxTextChars},
                 .format = kModelFormat,
                 .from = "Ollama"};
  };
  std::vector<Field> table = {name_field("model", &request.model),
                              name_field("name", &request.name)};
  for (const char* name : {"verbose", "stream", "insecure"})
    table.push_back({.name = name, .target = IgnoredField{}, .from = "Ollama"});
  return table;
}

// Reads a request about a model. Errors: also a model that is not served.
ApiResult<ModelRequest> read_model_request(ApiService& service, const HttpRequest& request) {
  const auto read = [](std::string_view text,
                       std::vector<std::string>& unknown_names) -> ApiResult<ModelRequest> {
    ModelRequest asked;
    if (auto error = read_body_fields(text, model_request_table(asked), unknown_names))
      return std::move(*error);
    return asked;
  };
  auto asked = read_logged(service, read, request.body);
  if (!asked.ok()) return asked;
  for (std::string* name : {&asked->model, &asked->name}) {
    drop_tag(service, *name);
    if (auto error = check_model_name(service, *name)) return std::move(*error);
  }
  return asked;
}

// Returns a number of parameters as Ollama shows it: "134.5M", "7.2B".
std::string shown_parameters(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", static_cast<double>(count) / 1e9);
  return fmt::format("{:.1f}M", static_cast<double>(count) / 1e6);
}

json details(const ServedModel& model) {
  return {{"parent_model", ""},
          {"format", model.weights.is_gguf ? "gguf" : "safetensors"},
          {"family", model.config.architecture},
          {"families", {model.config.architecture}},
          {"parameter_size", shown_parameters(model.weights.num_parameters)},
          {"quantization_level", model.weights.format}};
}

json entry(const ServedModel& model, const std::string& name) {
  return {{"name", name},
          {"model", name},
          {"modified_at", ollama_time(model.weights.modified_ns)},
          {"size", model.weights.num_bytes},
          {"digest", model.weights.digest},
          {"details", details(model)}};
}

json entries(const ApiService& service) {
  json list = json::array();
  for (const std::string& name : service.model_names) list.push_back(entry(service.model, name));
  return list;
}

}  // namespace

HttpResponse ollama_tags(const ApiService& service) {
  return json_response({{"models", entries(service)}});
}

HttpResponse ollama_running_models(const ApiService& service) {
  json models = entries(service);
  for (json& model : models) {
    model["expires_at"] = "9999-12-31T23:59:59Z";  // the model is never unloaded
    model["size_vram"] = 0;
    model["context_length"] = service.model.engine->limits().max_model_len;
  }
  return json_response({{"models", std::move(models)}});
}

HttpResponse ollama_show(ApiService& service, const HttpRequest& request) {
  if (auto asked = read_model_request(service, request); !asked.ok())
    return error_response(asked.error());
  const ServedModel& model = service.model;
  json capabilities = {"completion", "tools"};
  if (model.no_embeddings.ok()) capabilities.push_back("embedding");
  if (model.answer_format.thought) capabilities.push_back("thinking");
  if (model.fill_in) capabilities.push_back("insert");
  const json info = {
      {"general.architecture", model.config.architecture},
      {"general.parameter_count", model.weights.num_parameters},
      {model.config.architecture + ".context_length", model.engine->limits().max_model_len}};
  return json_response({{"modelfile", ""},
                        {"parameters", ""},
                        {"template", model.chat_template ? model.chat_template->text() : ""},
                        {"details", details(model)},
                        {"model_info", info},
                        {"modified_at", ollama_time(model.weights.modified_ns)},
                        {"capabilities", std::move(capabilities)}});
}

HttpResponse ollama_version() {
  return json_response({{"version", kOllamaVersion}, {"pagoda", version()}});
}

HttpResponse ollama_pull(ApiService& service, const HttpRequest& request) {
  if (auto asked = read_model_request(service, request); !asked.ok()) {
    if (asked.error().status != 404) return error_response(asked.error());
    return error_response(
        {404,
         fmt::format("{}; `pagoda pull` fetches a model, and `pagoda serve` serves it",
                     asked.error().message),
         "model", "model_not_found"});
  }
  return json_response({{"status", "success"}});
}

json ollama_model_schema() {
  ModelRequest request;
  return fields_schema(model_request_table(request));
}

json ollama_status_schema() {
  return object_schema({{"status", text_schema()}});
}

json ollama_version_schema() {
  return object_schema({{"version", text_schema()}, {"pagoda", text_schema()}});
}

}  // namespace pagoda
