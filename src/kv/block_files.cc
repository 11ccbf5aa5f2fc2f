#include "kv/block_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include "core/file_descriptor.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::size_t kDigestDigits = 64, kPrefixDigits = 2;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

Status failed(std::string_view what, const std::string& path) {
  return unavailable("[block file] {} {}: {}", what, path, std::strerror(errno));
}

bool is_hex(std::string_view name, std::size_t num_digits) {
  return name.size() == num_digits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns whether a file is one of ours: a digest, or one with the end of an unfinished file.
bool is_block_name(std::string_view name) {
  return is_hex(name.substr(0, kDigestDigits), kDigestDigits) &&
         (name.size() == kDigestDigits || name.ends_with(kUnfinished));
}

// Makes a folder for its owner alone; one that is there already will do.
bool make_folder(const std::string& path) {
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool read_all(int file, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

// Calls visit(entry) for what a folder has; one that is not there has nothing.
template <typename Visit>
Status for_each_entry(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) visit(*entry);
  if (!error || error == std::errc::no_such_file_or_directory) return ok_status();
  return unavailable("[block file] listing {}: {}", folder.string(), error.message());
}

class FolderOfBlockFiles final : public BlockFiles {
 public:
  explicit FolderOfBlockFiles(std::string folder)
      : folder_(std::move(folder)), unfinished_suffix_(make_suffix()) {}

  Result<std::vector<BlockFileEntry>> list() override;
  Status read(const std::string& name, std::size_t expected_size,
              std::vector<std::byte>& bytes) override;
  Status write(const std::string& name, std::span<const std::byte> bytes) override;
  Status remove(const std::string& name) override;
  void mark_used(const std::string& name, std::int64_t used_ns) override;

 private:
  // Names no other process makes: its id may be another one's in another container.
  static std::string make_suffix() {
    std::random_device random;
    return fmt::format(".{:08x}{:08x}{}", random(), random(), kUnfinished);
  }
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  bool make_folders_of(const std::string& name) const;
  void list_part(const std::string& part, std::vector<BlockFileEntry>& entries,
                 Status& status) const;

  const std::string folder_;
  const std::string unfinished_suffix_;
};

void FolderOfBlockFiles::list_part(const std::string& part, std::vector<BlockFileEntry>& entries,
                                   Status& status) const {
  const Status listed = for_each_entry(path_of(part), [&](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    struct stat info = {};
    if (!is_block_name(name) || ::lstat(file.path().c_str(), &info) != 0 ||
        !S_ISREG(info.st_mode)) {
      return;
    }
#ifdef __APPLE__
    const timespec& used = info.st_mtimespec;
#else
    const timespec& used = info.st_mtim;
#endif
    entries.push_back({.name = part + "/" + name,
                       .num_bytes = info.st_size,
                       .used_ns = used.tv_sec * kNsPerSecond + used.tv_nsec});
  });
  if (!listed.ok()) status = listed;
}

Result<std::vector<BlockFileEntry>> FolderOfBlockFiles::list() {
  std::vector<BlockFileEntry> entries;
  Status status;
  PAGODA_RETURN_IF_ERROR(for_each_entry(folder_, [&](const fs::directory_entry& scope) {
    const std::string name = scope.path().filename().string();
    if (!is_hex(name, kDigestDigits)) return;
    const Status listed = for_each_entry(scope.path(), [&](const fs::directory_entry& prefix) {
      const std::string digits = prefix.path().filename().string();
      if (is_hex(digits, kPrefixDigits)) list_part(name + "/" + digits, entries, status);
    });
    if (!listed.ok()) status = listed;
  }));
  if (!status.ok()) return status;
  return entries;
}

Status FolderOfBlockFiles::read(const std::string& name, std::size_t expected_size,
                                std::vector<std::byte>& bytes) {
  const std::string path = path_of(name);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    return errno == ENOENT ? not_found("[block file] {}: there is none", path)
                           : failed("opening", path);
  }
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return failed("opening", path);
  if (!S_ISREG(info.st_mode) || info.st_size != static_cast<off_t>(expected_size)) {
    return data_loss("[block file] {}: expected {} bytes, got {}", path, expected_size,
                     static_cast<std::int64_t>(info.st_size));
  }
  bytes.resize(expected_size);
  errno = 0;  // of a file that ends too soon
  if (!read_all(file.get(), bytes)) return failed("reading", path);
  return ok_status();
}

bool FolderOfBlockFiles::make_folders_of(const std::string& name) const {
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    if (!make_folder(path_of(name.substr(0, end)))) return false;
  }
  return make_folder(folder_);
}

Status FolderOfBlockFiles::write(const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = path_of(name);
  const std::string unfinished = path + unfinished_suffix_;
  if (!make_folders_of(name)) return failed("making the folder of", path);
  FileDescriptor file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failed("making", unfinished);
  Status status;
  if (!write_all(file.get(), bytes) || !file.close() ||
      ::rename(unfinished.c_str(), path.c_str()) != 0) {
    status = failed("writing", path);
    ::unlink(unfinished.c_str());
  }
  return status;
}

Status FolderOfBlockFiles::remove(const std::string& name) {
  const std::string path = path_of(name);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return ok_status();
  return failed("removing", path);
}

void FolderOfBlockFiles::mark_used(const std::string& name, std::int64_t used_ns) {
  std::array<timespec, 2> times = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1] = {.tv_sec = static_cast<time_t>(used_ns / kNsPerSecond),
              .tv_nsec = static_cast<long>(used_ns % kNsPerSecond)};
  (void)::utimensat(AT_FDCWD, path_of(name).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
}

}  // namespace

Result<std::unique_ptr<BlockFiles>> open_block_files(const std::string& folder) {
  const auto refused = [&](const std::string& why) {
    return invalid_argument(
        "[kv cache] prefix-cache-dir: expected a folder to write in, got {}: {}", folder, why);
  };
  // Folders above it get the usual mode, itself its owner's.
  const fs::path path(folder);
  std::error_code error;
  if (!path.parent_path().empty()) fs::create_directories(path.parent_path(), error);
  if (error) return refused(error.message());
  if (!make_folder(folder)) return refused(std::strerror(errno));
  std::string probe = folder + "/probe-XXXXXX";  // mkstemp() fills in the end
  const FileDescriptor file(::mkstemp(probe.data()));
  if (file.get() < 0) return refused(std::strerror(errno));
  ::unlink(probe.c_str());
  return std::unique_ptr<BlockFiles>(std::make_unique<FolderOfBlockFiles>(folder));
}

}  // namespace pagoda
