#include "server/base/json_body.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/utf8.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

// The memory of a parsed value: 16 bytes, and 16 more while the list that holds it grows. A list,
// an object, a string or a name takes the additional bytes below.
constexpr std::size_t kValueBytes = 32;
constexpr std::size_t kContainerBytes = 96;
constexpr std::size_t kStringBytes = 96;

// Offsets of what is wrong with a body's values, found before any value is built.
struct JsonMeasures {
  std::size_t too_deep_at = std::string_view::npos;  // the bracket that opens one level too many
  // The byte at which the values take too much memory.
  std::size_t too_large_at = std::string_view::npos;
};

// Returns the offset of the quote that ends a string, whose text begins at `i`; or the text's end.
std::size_t end_of_string(std::string_view text, std::size_t i) {
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i;
}

// Measures a text, which need not be valid JSON. Stops where it is too deep or too large.
JsonMeasures measure_json(std::string_view text) {
  std::size_t num_bytes = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t at = i;
    switch (text[i]) {
      case ',':
        num_bytes += kValueBytes;
        break;
      case '"':
        num_bytes += kStringBytes;
        i = end_of_string(text, i + 1);
        break;
      case '[':
      case '{':
        num_bytes += kContainerBytes;
        ++depth;
        break;
      case ']':
      case '}':
        --depth;
        break;
      default:
        continue;
    }
    if (num_bytes > kMaxJsonBytes) return {.too_large_at = at};
    if (depth > kMaxJsonDepth) return {.too_deep_at = at};
  }
  return {};
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
  if (measures.too_large_at != std::string_view::npos) {
    return bad_request("",
                       fmt::format("the body: expected values that take at most {} bytes of "
                                   "memory, got more at byte {}",
                                   kMaxJsonBytes, measures.too_large_at),
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
    // `error.byte` is the number of bytes read, including the one at fault.
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
