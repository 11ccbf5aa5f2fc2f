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

// Arrays and objects within one another. Deeper bodies are refused, because what visits a value
// recurses.
inline constexpr int kMaxJsonDepth = 64;

// The memory that a body's values may take, besides the bytes of their strings. A value takes 32
// bytes, and a string, a list or an object, of two or three bytes in a body, takes 96 more. Two
// million token ids have room.
inline constexpr std::size_t kMaxJsonBytes = 64 << 20;

// Parses the body's object. Errors name the byte: not UTF-8, not JSON (NaN and numbers beyond a
// double among it), too deep; or say that its values take too much memory, or that it is no object.
ApiResult<RequestJson> parse_json_body(std::string_view body);

// Returns the 200 whose body is that value.
HttpResponse json_response(const nlohmann::json& body);

}  // namespace pagoda
