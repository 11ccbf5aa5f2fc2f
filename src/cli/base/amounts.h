// Writes amounts for people.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace pagoda {

// Returns a number of bytes: "98.4 MB" in millions, or "4.29 GB" from a billion on.
inline std::string size_text(std::int64_t num_bytes) {
  const auto number = static_cast<double>(num_bytes);
  return number < 1e9 ? fmt::format("{:.1f} MB", number / 1e6)
                      : fmt::format("{:.2f} GB", number / 1e9);
}

// Returns a model's number of parameters: "134.5M", or "8.0B" from a billion on.
inline std::string parameters_text(std::int64_t num_parameters) {
  const auto number = static_cast<double>(num_parameters);
  return number < 1e9 ? fmt::format("{:.1f}M", number / 1e6) : fmt::format("{:.1f}B", number / 1e9);
}

}  // namespace pagoda
