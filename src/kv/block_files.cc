#include "kv/block_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "core/file_descriptor.h"
#include "kv/private_folder.h"

namespace pagoda {
namespace {

constexpr int kMakeFile = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
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

// Returns whether a name is that of a block file: a digest, or a digest with the suffix of an
// unfinished file.
bool is_block_name(std::string_view name) {
  return is_hex(name.substr(0, kDigestDigits), kDigestDigits) &&
         (name.size() == kDigestDigits || name.ends_with(kUnfinished));
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

std::string file_of(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

class FolderOfBlockFiles final : public BlockFiles {
 public:
  explicit FolderOfBlockFiles(std::string parent)
      : parent_(std::move(parent)), unfinished_suffix_(make_suffix()) {}

  // Makes the folder if it is missing, and checks that a file can be written in it.
  Status check() const;

  Result<std::vector<BlockFileEntry>> list() override;
  Status read(const std::string& name, std::size_t expected_size,
              std::vector<std::byte>& bytes) override;
  Status write(const std::string& name, std::span<const std::byte> bytes) override;
  Status remove(const std::string& name) override;
  void mark_used(const std::string& name, std::int64_t used_ns) override;

 private:
  // Returns a suffix that no other process makes. A process id would not do: a process in another
  // container may have the same one.
  static std::string make_suffix() {
    std::random_device random;
    return fmt::format(".{:08x}{:08x}{}", random(), random(), kUnfinished);
  }
  Result<PrivateFolder> open_folder(PrivateFolder::Wish wish) const {
    return PrivateFolder::open(parent_, std::string(kBlockFolderName), wish);
  }
  Result<PrivateFolder> open_folder_of(const std::string& name, PrivateFolder::Wish wish) const;

  const std::string parent_;
  const std::string unfinished_suffix_;
};

// Opens the folder by its path on each call, because another process may have removed it meanwhile.
Result<PrivateFolder> FolderOfBlockFiles::open_folder_of(const std::string& name,
                                                         PrivateFolder::Wish wish) const {
  PAGODA_ASSIGN_OR_RETURN(PrivateFolder folder, open_folder(wish));
  std::size_t begin = 0;
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', begin)) {
    PAGODA_ASSIGN_OR_RETURN(folder, folder.open_below(name.substr(begin, end - begin), wish));
    begin = end + 1;
  }
  return folder;
}

Status FolderOfBlockFiles::check() const {
  PAGODA_ASSIGN_OR_RETURN(const PrivateFolder folder, open_folder(PrivateFolder::Wish::kMade));
  const std::string probe = "probe" + unfinished_suffix_;
  const FileDescriptor file(::openat(folder.descriptor(), probe.c_str(), kMakeFile, 0600));
  if (file.get() < 0) return failed("writing in", folder.path());
  (void)::unlinkat(folder.descriptor(), probe.c_str(), 0);
  return ok_status();
}

// Adds the files of `folder` to the entries, with `name` as their folder's name.
Status list_files(const PrivateFolder& folder, const std::string& name,
                  std::vector<BlockFileEntry>& entries) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> files, folder.names());
  for (const std::string& file : files) {
    struct stat info = {};
    if (!is_block_name(file) ||
        ::fstatat(folder.descriptor(), file.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
#ifdef __APPLE__
    const timespec& used = info.st_mtimespec;
#else
    const timespec& used = info.st_mtim;
#endif
    entries.push_back({.name = name + "/" + file,
                       .num_bytes = info.st_size,
                       .used_ns = used.tv_sec * kNsPerSecond + used.tv_nsec});
  }
  return ok_status();
}

// Opens a folder for list(); absent if it is gone, is a link or belongs to another user.
Result<std::optional<PrivateFolder>> open_listed(const PrivateFolder& parent,
                                                 const std::string& name) {
  auto folder = parent.open_below(name, PrivateFolder::Wish::kFound);
  if (folder.ok()) return std::optional(*std::move(folder));
  if (folder.status().code() == StatusCode::kUnavailable) return folder.status();
  return std::optional<PrivateFolder>();
}

Result<std::vector<BlockFileEntry>> FolderOfBlockFiles::list() {
  std::vector<BlockFileEntry> entries;
  const Result<PrivateFolder> folder = open_folder(PrivateFolder::Wish::kFound);
  if (folder.status().code() == StatusCode::kNotFound) return entries;
  PAGODA_RETURN_IF_ERROR(folder.status());
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> scopes, folder->names());
  for (const std::string& scope : scopes) {
    if (!is_hex(scope, kDigestDigits)) continue;
    PAGODA_ASSIGN_OR_RETURN(const auto of_scope, open_listed(*folder, scope));
    if (!of_scope) continue;
    PAGODA_ASSIGN_OR_RETURN(const std::vector<std::string> prefixes, of_scope->names());
    for (const std::string& prefix : prefixes) {
      if (!is_hex(prefix, kPrefixDigits)) continue;
      PAGODA_ASSIGN_OR_RETURN(const auto of_prefix, open_listed(*of_scope, prefix));
      if (!of_prefix) continue;
      PAGODA_RETURN_IF_ERROR(list_files(*of_prefix, scope + "/" + prefix, entries));
    }
  }
  return entries;
}

Status FolderOfBlockFiles::read(const std::string& name, std::size_t expected_size,
                                std::vector<std::byte>& bytes) {
  PAGODA_ASSIGN_OR_RETURN(const PrivateFolder folder,
                          open_folder_of(name, PrivateFolder::Wish::kFound));
  const FileDescriptor file(::openat(folder.descriptor(), file_of(name).c_str(),
                                     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    return errno == ENOENT ? not_found("[block file] {}: there is none", name)
                           : failed("opening", name);
  }
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return failed("opening", name);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return data_loss("[block file] {}: expected a file of this user's", name);
  if (info.st_size != static_cast<off_t>(expected_size)) {
    return data_loss("[block file] {}: expected {} bytes, got {}", name, expected_size,
                     static_cast<std::int64_t>(info.st_size));
  }
  bytes.resize(expected_size);
  errno = 0;  // a file that ends too soon sets none
  if (!read_all(file.get(), bytes)) return failed("reading", name);
  return ok_status();
}

Status FolderOfBlockFiles::write(const std::string& name, std::span<const std::byte> bytes) {
  PAGODA_ASSIGN_OR_RETURN(const PrivateFolder folder,
                          open_folder_of(name, PrivateFolder::Wish::kMade));
  const std::string whole = file_of(name);
  const std::string unfinished = whole + unfinished_suffix_;
  FileDescriptor file(::openat(folder.descriptor(), unfinished.c_str(), kMakeFile, 0600));
  if (file.get() < 0) return failed("making", name);
  Status status;
  if (!write_all(file.get(), bytes) || !file.close() ||
      ::renameat(folder.descriptor(), unfinished.c_str(), folder.descriptor(), whole.c_str()) !=
          0) {
    status = failed("writing", name);
    (void)::unlinkat(folder.descriptor(), unfinished.c_str(), 0);
  }
  return status;
}

Status FolderOfBlockFiles::remove(const std::string& name) {
  const Result<PrivateFolder> folder = open_folder_of(name, PrivateFolder::Wish::kFound);
  if (folder.status().code() == StatusCode::kNotFound) return ok_status();
  PAGODA_RETURN_IF_ERROR(folder.status());
  if (::unlinkat(folder->descriptor(), file_of(name).c_str(), 0) == 0 || errno == ENOENT)
    return ok_status();
  return failed("removing", name);
}

void FolderOfBlockFiles::mark_used(const std::string& name, std::int64_t used_ns) {
  const Result<PrivateFolder> folder = open_folder_of(name, PrivateFolder::Wish::kFound);
  if (!folder.ok()) return;
  std::array<timespec, 2> times = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1] = {.tv_sec = static_cast<time_t>(used_ns / kNsPerSecond),
              .tv_nsec = static_cast<long>(used_ns % kNsPerSecond)};
  (void)::utimensat(folder->descriptor(), file_of(name).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
}

}  // namespace

Result<std::unique_ptr<BlockFiles>> open_block_files(const std::string& parent) {
  auto files = std::make_unique<FolderOfBlockFiles>(parent);
  if (const Status status = files->check(); !status.ok()) {
    return invalid_argument(
        "[kv cache] prefix-cache-dir: expected a folder to make one in, got {}: {}", parent,
        status.message());
  }
  return std::unique_ptr<BlockFiles>(std::move(files));
}

}  // namespace pagoda
