#include "cli/api_keys.h"

#include <algorithm>

#include "cli/prompt_text.h"

namespace pagoda {
namespace {

Status check_key(const std::string& source, std::string_view key) {
  if (key.empty()) {
    return invalid_argument("[{}] expected a key, got an empty one: is a variable not set?",
                            source);
  }
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (std::all_of(key.begin(), key.end(), is_visible)) return ok_status();
  return invalid_argument("[{}] expected a key of visible ASCII characters, got others in it",
                          source);
}

Result<std::vector<std::string>> keys_of_file(const std::string& file) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_prompt_text("--api-key-file", file));
  std::vector<std::string> keys;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) keys.push_back(std::move(line));
  }
  if (keys.empty())
    return invalid_argument("[--api-key-file] {}: expected a key a line, got none", file);
  return keys;
}

}  // namespace

Result<std::vector<std::string>> read_api_keys(const ApiKeySources& sources) {
  std::vector<std::string> keys = sources.flags;
  for (const std::string& key : keys) PAGODA_RETURN_IF_ERROR(check_key("--api-key", key));
  if (!sources.file.empty()) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> more, keys_of_file(sources.file));
    for (const std::string& key : more) PAGODA_RETURN_IF_ERROR(check_key("--api-key-file", key));
    keys.insert(keys.end(), more.begin(), more.end());
  }
  if (keys.empty() && sources.environment != nullptr) {
    keys.emplace_back(sources.environment);
    PAGODA_RETURN_IF_ERROR(check_key("PAGODA_API_KEY", keys.front()));
  }
  return keys;
}

}  // namespace pagoda
