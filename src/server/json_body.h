// A request's body as JSON, checked before anything is built from it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/request_json.h"

namespace pagoda {

// Arrays and objects within one another. Deeper bodies are refused, because what walks a value
// recurses.
inline constexpr int kMaxJsonDepth = 64;

// The body's object. Errors name the byte: not UTF-8, not JSON (NaN and numbers beyond a double
// among it), too deep, not an object.
ApiResult<RequestJson> parse_json_body(std::string_view body);

// Offset of the first byte that is no part of well-formed UTF-8; npos: there is none.
std::size_t find_invalid_utf8(std::string_view text);

// UTF-8, with U+FFFD for what is not; never throws.
std::string to_json_text(const nlohmann::json& value);
std::string to_json_text(const RequestJson& value);

}  // namespace pagoda
