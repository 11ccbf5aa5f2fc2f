#include "tests/fuzz/field_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "core/check.h"
#include "core/json.h"
#include "server/anthropic/messages_request.h"
#include "server/chat/chat_request.h"
#include "server/information/tokenize_request.h"
#include "server/ollama/ollama_request.h"
#include "server/openai/completion_request.h"
#include "server/pooling/embedding_request.h"
#include "server/pooling/score_request.h"
#include "server/responses/response_request.h"
#include "tests/fuzz/odd_draw.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr int kMaxFields = 12;
constexpr int kMaxDepth = 8;
// Bounds above these are not drawn, so that an input takes milliseconds.
constexpr std::size_t kMaxDrawnItems = 5000;
constexpr std::size_t kMaxDrawnChars = 20'000;

constexpr std::string_view kStarts[] = {
    R"("prompt": "say a")",       R"("messages": [{"role": "user", "content": "say a"}])",
    R"("prompt": [[1, 2], [3]])", R"("tokens": [1, 2])",
    R"("input": ["say a"])",      R"("model": "fake-model")",
    R"("stream": true)"};
constexpr std::string_view kChars[] = {"a",       "b",
                                       "\\n",     "\\\"",
                                       "\\u0000", "\xc3\xa9",
                                       "\\u00e9", "\\ud83d\\ude00",
                                       "\\ud83d", "\xf0\x9f\x98\x80",
                                       "\xff",    "<|im_end|>"};
constexpr std::string_view kOdd[] = {
    "null",       "true",   "false",     "0",      "-1",
    "1.5",        "1e999",  "-0",        "1e-400", "9223372036854775808",
    "2147483648", "\"\"",   "\"5\"",     "[]",     "{}",
    "[[]]",       "[null]", "{\"\": 0}", "NaN",    "{",
    "]",          ""};

struct Endpoint {
  json schema;
  std::vector<std::string> names;
};

Endpoint endpoint_of(json schema) {
  Endpoint endpoint = {.schema = std::move(schema), .names = {}};
  for (const auto& [name, field] : endpoint.schema.at("properties").items())
    endpoint.names.push_back(name);
  return endpoint;
}

const std::vector<Endpoint>& endpoints() {
  static const auto all = [] {
    DetokenizeRequest detokenize;
    return std::vector<Endpoint>{endpoint_of(chat_request_schema()),
                                 endpoint_of(completion_request_schema()),
                                 endpoint_of(embedding_request_schema()),
                                 endpoint_of(score_request_schema()),
                                 endpoint_of(rerank_request_schema()),
                                 endpoint_of(tokenize_request_schema()),
                                 endpoint_of(fields_schema(detokenize_field_table(detokenize))),
                                 endpoint_of(response_request_schema()),
                                 endpoint_of(messages_request_schema()),
                                 endpoint_of(ollama_generate_schema())};
  }();
  return all;
}

// Draws a small count, or a count that is at a bound, one above or one below.
std::size_t draw_count(FuzzedDataProvider& draws, const json& schema, const char* bound,
                       std::size_t max_drawn) {
  const std::size_t few = draws.ConsumeIntegralInRange<std::size_t>(0, 4);
  const auto most = schema.find(bound);
  if (most == schema.end() || *most > max_drawn || !is_odd(draws)) return few;
  return most->get<std::size_t>() + draws.ConsumeIntegralInRange<std::size_t>(0, 2) - 1;
}

std::string draw_string(FuzzedDataProvider& draws, const json& schema) {
  if (is_odd(draws))
    return json(draws.ConsumeRandomLengthString(16))
        .dump(-1, ' ', false, json::error_handler_t::replace);
  const std::size_t num_chars = draw_count(draws, schema, "maxLength", kMaxDrawnChars);
  const std::string_view one = draws.PickValueInArray(kChars);
  std::string text = "\"";
  for (std::size_t i = 0; i < num_chars; ++i) text += i < 4 ? draws.PickValueInArray(kChars) : one;
  return text + "\"";
}

std::string draw_number(FuzzedDataProvider& draws, const json& schema) {
  const bool is_integer = schema.at("type").dump().find("integer") != std::string::npos;
  const double step = is_integer || is_odd(draws) ? 1 : 1e-7;
  const char* bounds[] = {"minimum", "maximum", "exclusiveMinimum"};
  const auto bound = schema.find(draws.PickValueInArray(bounds));
  if (bound != schema.end() && draws.ConsumeBool()) {
    if (bound->is_number_integer() && !is_odd(draws)) return bound->dump();
    return fmt::format("{}", bound->get<double>() + step * draws.ConsumeIntegralInRange(-1, 1));
  }
  if (is_integer) return std::to_string(draws.ConsumeIntegralInRange(-3, 300));
  return fmt::format("{}", draws.ConsumeFloatingPointInRange(-3.0, 3.0));
}

std::string draw_value(FuzzedDataProvider& draws, const json& schema, int depth);

std::string draw_list(FuzzedDataProvider& draws, const json& schema, int depth) {
  const std::size_t num_items = draw_count(draws, schema, "maxItems", kMaxDrawnItems);
  const json items = schema.value("items", json::object());
  std::string list = "[";
  std::string item;
  for (std::size_t i = 0; i < num_items; ++i) {
    if (i < 4) item = draw_value(draws, items, depth + 1);
    list += (i == 0 ? "" : ",") + item;
  }
  return list + "]";
}

std::string draw_object(FuzzedDataProvider& draws, const json& schema, int depth) {
  std::vector<std::string> members;
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    for (const auto& [name, property] : properties->items()) {
      if (draws.ConsumeBool())
        members.push_back(json(name).dump() + ":" + draw_value(draws, property, depth + 1));
    }
  }
  const json more = schema.value("additionalProperties", json::object());
  const json any = json::object();
  const std::size_t num_more = draw_count(draws, schema, "maxProperties", kMaxDrawnItems);
  for (std::size_t i = 0; i < num_more; ++i) {
    members.push_back(
        fmt::format("\"{}\":", i < 4 ? draws.ConsumeIntegralInRange(0, 300) : int(i)) +
        draw_value(draws, more.is_object() ? more : any, depth + 1));
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

std::string nested(FuzzedDataProvider& draws) {
  const int depth = draws.ConsumeIntegralInRange(1, 80);
  std::string text;
  for (int i = 0; i < depth; ++i) text += draws.ConsumeBool() ? "[" : "{\"a\":";
  std::string ends;
  for (const char c : text) {
    if (c == '[' || c == '{') ends.insert(ends.begin(), c == '[' ? ']' : '}');
  }
  return text + "1" + ends;
}

// Draws a value that `schema` accepts, or nearly accepts.
std::string draw_value(FuzzedDataProvider& draws, const json& schema, int depth) {
  if (is_odd(draws)) return std::string(draws.PickValueInArray(kOdd));
  if (is_odd(draws)) return nested(draws);
  if (depth > kMaxDepth || draws.remaining_bytes() == 0) return "1";
  const auto pick = [&](const json& list) {
    return list.at(draws.ConsumeIntegralInRange<std::size_t>(0, list.size() - 1));
  };
  if (schema.contains("const")) return schema.at("const").dump();
  if (schema.contains("enum") && !schema.at("enum").empty()) return pick(schema.at("enum")).dump();
  for (const char* choice : {"anyOf", "oneOf"}) {
    if (schema.contains(choice)) return draw_value(draws, pick(schema.at(choice)), depth + 1);
  }
  json type = schema.value("type", json("string"));
  if (type.is_array()) type = type.at(0);  // the second one is null
  if (type == "array") return draw_list(draws, schema, depth);
  if (type == "object") return draw_object(draws, schema, depth);
  if (type == "boolean") return draws.ConsumeBool() ? "true" : "false";
  if (type == "integer" || type == "number") return draw_number(draws, schema);
  return draw_string(draws, schema);
}

// Checks that a field's target holds a value within the field's bounds.
struct BoundChecker {
  const Field& field;

  void operator()(const bool*) const {}
  void operator()(const std::optional<std::int64_t>*) const {}
  void operator()(const CustomField&) const {}
  void operator()(const RefusedField&) const {}
  void operator()(IgnoredField) const {}
  void operator()(const int* value) const { check_number(*value); }
  void operator()(const float* value) const { check_number(*value); }
  void operator()(const std::string* value) const { check_string(*value); }
  template <typename T>
  void operator()(const std::optional<T>* value) const {
    if (*value) (*this)(&**value);
  }
  template <typename T>
  void operator()(const std::vector<T>* values) const {
    PAGODA_CHECK(values->size() <= field.size.max_items, field.name);
    for (const T& value : *values) (*this)(&value);
  }

  void check_number(double value) const {
    const FieldRange& range = field.range;
    PAGODA_CHECK(value <= range.maximum && value >= range.minimum, field.name);
    PAGODA_CHECK(!range.exclusive_minimum || value > range.minimum, field.name);
  }
  void check_string(std::string_view text) const {
    const auto num_chars =
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
    PAGODA_CHECK(static_cast<std::size_t>(num_chars) <= field.size.max_chars, field.name);
  }
};

}  // namespace

std::string draw_body(FuzzedDataProvider& draws) {
  const std::vector<Endpoint>& all = endpoints();
  const Endpoint& endpoint = all[draws.ConsumeIntegralInRange<std::size_t>(0, all.size() - 1)];
  std::vector<std::string> members;
  if (!is_odd(draws)) members.emplace_back(draws.PickValueInArray(kStarts));
  const int num_fields = draws.ConsumeIntegralInRange(0, kMaxFields);
  for (int i = 0; i < num_fields; ++i) {
    const std::string& name =
        endpoint.names[draws.ConsumeIntegralInRange<std::size_t>(0, endpoint.names.size() - 1)];
    const json& schema = endpoint.schema.at("properties").at(name);
    const std::string sent = is_odd(draws) ? draw_string(draws, {}) : json(name).dump();
    members.push_back(sent + ": " + draw_value(draws, schema, 0));
    if (is_odd(draws)) members.push_back(members.back());
  }
  const std::string_view separator = is_odd(draws) ? ";" : ", ";
  std::string body = fmt::format("{{{}}}", fmt::join(members, separator));
  if (is_odd(draws)) body.resize(draws.ConsumeIntegralInRange<std::size_t>(0, body.size()));
  return body;
}

void check_bounds(const std::vector<Field>& table) {
  for (const Field& field : table) std::visit(BoundChecker{field}, field.target);
}

}  // namespace pagoda
