#include "core/text_file.h"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>

#include "core/lfs_pointer.h"

namespace pagoda {
namespace {

// Tokenizers of 250,000 tokens take 35 MB.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{256} << 20;

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return not_found("{}: expected a file, got none", file.string());
  }
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return data_loss("{}: {}", file.string(), error.message());
  if (size > kMaxFileBytes) {
    return data_loss("{}: expected at most {} bytes, got {}", file.string(), kMaxFileBytes, size);
  }
  std::string text(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(size));
  if (!stream || static_cast<std::uintmax_t>(stream.gcount()) != size) {
    return data_loss("{}: expected {} bytes, got {}", file.string(), size, stream.gcount());
  }
  PAGODA_RETURN_IF_ERROR(check_no_lfs_pointer(text, file.string()));
  return text;
}

Status write_text_file(const std::filesystem::path& file, std::string_view text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (stream) return ok_status();
  return unavailable("{}: cannot be written: {}", file.string(),
                     std::generic_category().message(errno));
}

}  // namespace pagoda
