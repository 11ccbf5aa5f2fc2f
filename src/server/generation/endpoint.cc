#include "server/generation/endpoint.h"

namespace pagoda {
namespace {

// The only parameter whose values may hold slashes.
constexpr std::string_view kModelParameter = "model";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes percent escapes, such as %41 to A; other text stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                           hex_value(text[i + 2]) >= 0;
    decoded += is_escape ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]))
                         : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

// Returns the part of a path that stands for the pattern's parameter; "" if the path does not fit.
std::string_view undecoded_parameter(std::string_view pattern, std::string_view path) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return "";
  const std::string_view before = pattern.substr(0, open);
  const std::string_view after = pattern.substr(pattern.find('}') + 1);
  const bool fits = path.size() > before.size() + after.size() && path.starts_with(before) &&
                    path.ends_with(after);
  if (!fits) return "";
  return path.substr(before.size(), path.size() - before.size() - after.size());
}

}  // namespace

std::string_view parameter_name(std::string_view pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return "";
  return pattern.substr(open + 1, pattern.find('}') - open - 1);
}

bool fits_pattern(std::string_view pattern, std::string_view path) {
  const std::string_view name = parameter_name(pattern);
  if (name.empty()) return pattern == path;
  const std::string_view value = undecoded_parameter(pattern, path);
  return !value.empty() && (name == kModelParameter || value.find('/') == std::string_view::npos);
}

std::string parameter_in_path(std::string_view pattern, std::string_view path) {
  return percent_decoded(undecoded_parameter(pattern, path));
}

}  // namespace pagoda
