#include "server/base/json_body.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/utf8.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

// The bytes that a value takes once it is read: 16 bytes, and as much again while the list that
// holds it grows. A list or an object takes its memory besides, and so does a string or a name.
constexpr std::size_t kValueBytes = 32;
constexpr std::size_t kContainerBytes = 96;
constexpr std::size_t kStringBytes = 96;

struct JsonMeasures {
  std::size_t too_deep_at = std::string_view::npos;  // the bracket that opens one level too many
  std::size_t num_bytes = 0;                         // about what its values take
};

// Needs no well-formed JSON; ends where it is too deep.
JsonMeasures measure_json(std::string_view text) {
  JsonMeasures measures;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == ',') measures.num_bytes += kValueBytes;
    if (c == '"') {
      in_string = true;
      measures.num_bytes += kStringBytes;
    }
    if (c == ']' || c == '}') --depth;
    if (c != '[' && c != '{') continue;
    measures.num_bytes += kContainerBytes;
    if (++depth > kMaxJsonDepth) {
      measures.too_deep_at = i;
      return measures;
    }
  }
  return measures;
}

}  // namespace

ApiResult<RequestJson> parse_json_body(std::string_view body) {
  if (const auto at = find_invalid_utf8(body); at != std::string_view::npos) {
    return bad_request("", fmt::format("the body is not valid UTF-8 at byte {}", at),
                       "invalid_utf8");
  }
  const JsonMeasures measures = measure_json(body);
  if (measures.too_deep_at != std::string_view::npos) {
    return bad_request("",
                       fmt::format("the body nests deeper than {} levels at byte {}", kMaxJsonDepth,
                                   measures.too_deep_at),
                       "invalid_json");
  }
  if (measures.num_bytes > kMaxJsonBytes) {
    return bad_request("",
                       fmt::format("the body: expected values that take at most {} bytes of "
                                   "memory, got so many that they take {}",
                                   kMaxJsonBytes, measures.num_bytes),
                       "out_of_range");
  }
  try {
    RequestJson value = RequestJson::parse(body);
    if (!value.is_object()) {
      return bad_request("",
                         fmt::format("the body: expected a JSON object, got {}", value.type_name()),
                         "invalid_json");
    }
    return value;
  } catch (const nlohmann::json::parse_error& error) {
    // Its byte counts what was read, the one at fault included.
    const std::size_t at = error.byte == 0 ? 0 : error.byte - 1;
    return bad_request("", fmt::format("the body is not valid JSON at byte {}", at),
                       "invalid_json");
  } catch (const nlohmann::json::exception& error) {
    return bad_request("", "the body is not valid JSON: a number is out of range", "invalid_json");
  }
}

HttpResponse json_response(const nlohmann::json& body) {
  return {.body = json_text(body)};
}

}  // namespace pagoda
