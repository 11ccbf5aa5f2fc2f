#include "server/json_body.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/json.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

// Bytes of the well-formed character at `text`'s start (Unicode's table 3-7); 0: there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto continues = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const std::uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;
    const std::uint8_t high = lead == 0xed ? 0x9f : 0xbf;  // no surrogates
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const std::uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

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

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    const std::size_t length = utf8_length(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return std::string_view::npos;
}

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
