#include "server/fields/reasoning_fields.h"

#include <array>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};
constexpr std::string_view kEffortsSchema =
    R"({"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]})";
constexpr std::string_view kThinkSchema =
    R"({"enum": [true, false, "none", "minimal", "low", "medium", "high", "xhigh", "max"]})";

MaybeError read_switch(std::string_view name, const RequestJson& value, ReasoningFields& fields) {
  if (!value.is_boolean()) return wrong_type(name, "true or false", value);
  fields.enable_thinking = value.get<bool>();
  return {};
}

MaybeError read_format(const RequestJson& value, ReasoningFields& fields) {
  if (value == RequestJson("none")) {
    fields.is_separate = false;
  } else if (value != RequestJson("auto") && value != RequestJson("deepseek")) {
    return bad_request("reasoning_format", "'reasoning_format': expected none, auto or deepseek");
  }
  return {};
}

}  // namespace

std::optional<ApiError> read_effort(std::string_view name, const RequestJson& value,
                                    ReasoningFields& fields) {
  for (const std::string_view effort : kEfforts) {
    if (value != RequestJson(std::string(effort))) continue;
    fields.effort = effort;
    return {};
  }
  return bad_request(
      std::string(name),
      fmt::format("'{}': expected one of none, minimal, low, medium, high, xhigh and "
                  "max",
                  name));
}

std::vector<Field> reasoning_field_table(ReasoningFields& fields) {
  const auto effort = [&fields](std::string_view name, const RequestJson& value) {
    return read_effort(name, value, fields);
  };
  const auto a_switch = [&fields](std::string_view name, const RequestJson& value) {
    return read_switch(name, value, fields);
  };
  return {
      {.name = "reasoning_effort",
       .target = CustomField{effort, kEffortsSchema},
       .description = "A variable of the chat template; none: the model is not to think."},
      {.name = "enable_thinking",
       .target = CustomField{a_switch, R"({"type": "boolean"})"},
       .description = "A variable of the chat template.",
       .from = "SGLang",
       .aliases = {"thinking"}},
      {.name = "think",
       .target = CustomField{[effort, a_switch](std::string_view name, const RequestJson& value) {
                               return value.is_boolean() ? a_switch(name, value)
                                                         : effort(name, value);
                             },
                             kThinkSchema},
       .description = "enable_thinking, or reasoning_effort.",
       .from = "Ollama"},
      {.name = "include_reasoning",
       .target = &fields.is_included,
       .description = "Whether the answer holds the model's thoughts.",
       .from = "vLLM"},
      {.name = "separate_reasoning",
       .target = &fields.is_separate,
       .description = "Whether thoughts are apart from the content.",
       .from = "SGLang"},
      {.name = "thinking_token_budget",
       .target = &fields.token_budget,
       .range = {.minimum = -1},
       .description = "The most tokens of a thought, which is ended there; -1: no such limit.",
       .from = "vLLM",
       .aliases = {"reasoning_budget_tokens"}},
      {.name = "reasoning_format",
       .target = CustomField{[&fields](std::string_view, const RequestJson& value) {
                               return read_format(value, fields);
                             },
                             R"({"enum": ["none", "auto", "deepseek"]})"},
       .description = "none: thoughts stay in the content.",
       .from = "llama.cpp"},
  };
}

std::string add_reasoning_variables(const ReasoningFields& fields, const std::string& kwargs_json) {
  std::optional<bool> thinks = fields.enable_thinking;
  if (!thinks && fields.effort == "none") thinks = false;
  if (!thinks && fields.effort.empty()) return kwargs_json;
  auto kwargs = parse_ordered_json(kwargs_json);
  const auto add = [&kwargs](const std::string& name, RequestJson value) {
    if (!kwargs.contains(name)) kwargs[name] = std::move(value);
  };
  if (!fields.effort.empty()) add("reasoning_effort", fields.effort);
  if (thinks) {
    add("enable_thinking", *thinks);
    add("thinking", *thinks);
  }
  return json_text(kwargs);
}

}  // namespace pagoda
