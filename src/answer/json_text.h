#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace pagoda {

// Writes a value as UTF-8 in one line, with U+FFFD for what is not; never throws.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Writes a text as a JSON string.
inline std::string json_string(std::string_view text) {
  return json_text(nlohmann::ordered_json(std::string(text)));
}

}  // namespace pagoda
