#include "cli/flags/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "cli/flags/prompt_text.h"

namespace pagoda {
namespace {

constexpr std::string_view kDigestScheme = "sha256:";

bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<Sha256Digest> digest_of_hex(std::string_view hex) {
  Sha256Digest digest = {};
  if (hex.size() != 2 * digest.size()) return {};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const char* const begin = hex.data() + 2 * i;
    if (std::from_chars(begin, begin + 2, digest[i], 16).ptr != begin + 2) return {};
  }
  return digest;
}

// Reads a key. source: where it is from, for errors.
Result<Sha256Digest> read_key(const std::string& source, std::string_view key) {
  std::optional<Sha256Digest> digest = sha256(key);
  if (!is_visible_ascii(key)) {
    return invalid_argument("[{}] expected a key of visible ASCII characters, got others in it",
                            source);
  }
  if (key.starts_with(kDigestScheme)) {
    digest = digest_of_hex(key.substr(kDigestScheme.size()));
    if (!digest)
      return invalid_argument("[{}] sha256: expected 64 hexadecimal digits, got others", source);
  }
  if (*digest == sha256(std::string_view())) {
    return invalid_argument("[{}] expected a key, got an empty one: is a variable not set?",
                            source);
  }
  return *digest;
}

Status add_key(const std::string& source, ApiKey key, std::vector<ApiKey>& keys) {
  for (const ApiKey& known : keys) {
    if (known.digest == key.digest && known.name != key.name) {
      return invalid_argument("[{}] expected a key of one name, got one that has another already",
                              source);
    }
  }
  keys.push_back(std::move(key));
  return ok_status();
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(kSpace)));
    line.remove_prefix(words.back().size());
  }
}

Status read_line(const std::string& source, std::string_view line, std::vector<ApiKey>& keys) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty() || words.front().starts_with('#')) return ok_status();
  const std::string_view name = words.size() == 1 ? std::string_view() : words.front();
  if (words.size() > 2 || !is_visible_ascii(name) || name.starts_with(kDigestScheme)) {
    return invalid_argument(
        "[{}] expected KEY, NAME KEY or NAME sha256:HEX in visible ASCII, got something else",
        source);
  }
  PAGODA_ASSIGN_OR_RETURN(const Sha256Digest digest, read_key(source, words.back()));
  return add_key(source, {digest, std::string(name)}, keys);
}

Status read_file(const std::string& file, std::vector<ApiKey>& keys) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_prompt_text("--api-key-file", file));
  const std::size_t num_before = keys.size();
  int number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string source = fmt::format("--api-key-file {}:{}", file, number);
    PAGODA_RETURN_IF_ERROR(
        read_line(source, std::string_view(text).substr(begin, end - begin), keys));
    begin = end + 1;
  }
  if (keys.size() == num_before)
    return invalid_argument("[--api-key-file] {}: expected a key a line, got none", file);
  return ok_status();
}

}  // namespace

Result<std::vector<ApiKey>> read_api_keys(const ApiKeySources& sources) {
  std::vector<ApiKey> keys;
  for (const std::string& key : sources.flags) {
    PAGODA_ASSIGN_OR_RETURN(const Sha256Digest digest, read_key("--api-key", key));
    PAGODA_RETURN_IF_ERROR(add_key("--api-key", {digest, ""}, keys));
  }
  if (!sources.file.empty()) PAGODA_RETURN_IF_ERROR(read_file(sources.file, keys));
  if (keys.empty() && sources.environment != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const Sha256Digest digest,
                            read_key("PAGODA_API_KEY", sources.environment));
    keys.push_back({digest, ""});
  }
  return keys;
}

}  // namespace pagoda
