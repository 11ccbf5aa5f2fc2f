// A request's body as JSON, checked before anything is built from it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "server/base/api_error.h"
#include "server/base/http_message.h"
#include "server/base/request_json.h"

namespace pagoda {

// The most levels of nested arrays and objects. Deeper bodies are refused, because functions that
// visit values are recursive.
inline constexpr int kMaxJsonDepth = 64;

// The most memory that a body's values may take, besides the bytes of their strings. A value takes
// 32 bytes. A string, a list or an object takes 96 more, even if it is two bytes long in the body.
// Two million token ids fit.
inline constexpr std::size_t kMaxJsonBytes = 64 << 20;

// Parses a body, which must be an object. Errors: invalid UTF-8, invalid JSON (also NaN and numbers
// beyond a double), too deep, too much memory for its values, not an object. Most name the byte.
ApiResult<RequestJson> parse_json_body(std::string_view body);

// Returns a response of status 200 with that value as its body.
HttpResponse json_response(const nlohmann::json& body);

}  // namespace pagoda
