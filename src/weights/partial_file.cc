#include "weights/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/file_descriptor.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".partial-";

bool is_partial_of(std::string_view name, std::string_view entry) {
  if (!entry.starts_with(name)) return false;
  entry.remove_prefix(name.size());
  if (!entry.starts_with(kMark)) return false;
  entry.remove_prefix(kMark.size());
  return !entry.empty() && entry.find_first_not_of("0123456789") == std::string_view::npos;
}

// Removes a partial file unless a process has it locked.
void remove_if_left(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) (void)::unlink(path.c_str());
}

void remove_left_files(const fs::path& path) {
  const std::string name = path.filename();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_partial_of(name, entry->path().filename().string())) remove_if_left(entry->path());
  }
}

}  // namespace

PartialFile::PartialFile(std::string path)
    : path_(std::move(path)), partial_(fmt::format("{}{}{}", path_, kMark, ::getpid())) {}

PartialFile::~PartialFile() {
  if (file_ == nullptr) return;
  std::remove(partial_.c_str());
  std::fclose(file_);
}

// Creates the file again until it exists and is locked. Before it is locked, another process may
// remove it like one that a killed process left.
Status PartialFile::open() {
  remove_left_files(path_);
  struct stat info = {};
  while (info.st_nlink == 0) {
    FileDescriptor file(
        ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.get() < 0) return failure(errno);
    (void)::flock(file.get(), LOCK_EX);  // without locks, left files are never removed
    if (::fstat(file.get(), &info) != 0) return failure(errno);
    if (info.st_nlink > 0) file_ = ::fdopen(file.release(), "wb");
  }
  return file_ != nullptr ? ok_status() : failure(errno);
}

Status PartialFile::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return ok_status();  // its address may be null, which fwrite forbids
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  return written ? ok_status() : failure(errno);
}

Status PartialFile::finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) return failure(errno);
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) return failure(errno);
  std::fclose(std::exchange(file_, nullptr));
  return ok_status();
}

Status PartialFile::failure(int error) const {
  const std::string reason = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return resource_exhausted("[gguf] writing {}: {}", path_, reason);
  }
  return unavailable("[gguf] writing {}: {}", path_, reason);
}

}  // namespace pagoda
