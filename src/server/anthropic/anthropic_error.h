// Errors in the shape of Anthropic's API.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "server/base/api_error.h"

namespace pagoda {

// Returns {"type": "error", "error": {"type", "message"}, "request_id"}: a response's body, or a
// stream's event. The error of a refused `thread` has "details" too.
nlohmann::json anthropic_error(const ApiError& error, std::string_view request_id);
std::string anthropic_error_body(const ApiError& error, std::string_view request_id);
nlohmann::json anthropic_error_schema();

}  // namespace pagoda
