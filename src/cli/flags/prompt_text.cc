#include "cli/flags/prompt_text.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace pagoda {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{256} << 20;

Result<std::string> read_all(const std::string& flag, const std::string& name,
                             std::istream& stream) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (stream.read(piece.data(), piece.size()) || stream.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxBytes)
      return data_loss("[{}] {}: expected at most {} bytes, got more", flag, name, kMaxBytes);
  }
  return text;
}

}  // namespace

Result<std::string> read_prompt_text(const std::string& flag, const std::string& path) {
  if (path == "-") {
    PAGODA_ASSIGN_OR_RETURN(std::string text, read_all(flag, "standard input", std::cin));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return not_found("[{}] {}: no such file", flag, path);
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error))
    return not_found("[{}] {}: cannot be read", flag, path);
  return read_all(flag, path, file);
}

bool is_text_piped_in() {
  return isatty(STDIN_FILENO) == 0;
}

}  // namespace pagoda
