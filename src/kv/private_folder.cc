#include "kv/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

namespace pagoda {
namespace {

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kOwnersAlone = S_IRWXU;

Status folder_error(std::string_view what, const std::string& path) {
  if (errno == ENOENT) return not_found("{}: there is none", path);
  return unavailable("{} {}: {}", what, path, std::strerror(errno));
}

// Opens the parent of a private folder. Any user may own it. If it is made here, only its owner has
// access, and folders above it get the usual mode.
Result<FileDescriptor> open_parent(const std::string& path, PrivateFolder::Wish wish) {
  FileDescriptor folder(::open(path.c_str(), kOpenFolder));
  if (folder.get() < 0 && errno == ENOENT && wish == PrivateFolder::Wish::kMade) {
    std::error_code ignored;  // opening the folder fails then
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    (void)::mkdir(path.c_str(), kOwnersAlone);
    folder = FileDescriptor(::open(path.c_str(), kOpenFolder));
  }
  struct stat info = {};
  if (folder.get() < 0 || ::fstat(folder.get(), &info) != 0) return folder_error("opening", path);
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return invalid_argument("all users may write in {}; `chmod o-w` or `chmod +t` mends that",
                            path);
  }
  return folder;
}

// Removes the access of everyone except the owner, or refuses the folder.
Status make_private(int folder, const std::string& path) {
  struct stat info = {};
  if (::fstat(folder, &info) != 0) return folder_error("opening", path);
  if (info.st_uid != ::geteuid()) {
    return invalid_argument("{} belongs to the user with the number {}, this process is {}'s", path,
                            info.st_uid, ::geteuid());
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return invalid_argument(
        "all users may write in {}, so what is there may be anybody's; remove it, or mount its "
        "file system with modes",
        path);
  }
  if ((info.st_mode & ACCESSPERMS) == kOwnersAlone) return ok_status();
  // Kubernetes gives a volume's group access to all of it when it mounts the volume (fsGroup).
  if (::fchmod(folder, kOwnersAlone) != 0) return folder_error("changing the mode of", path);
  return ok_status();
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& parent, const std::string& name,
                                          Wish wish) {
  PAGODA_ASSIGN_OR_RETURN(const FileDescriptor folder, open_parent(parent, wish));
  return open_in(folder.get(), name, parent + "/" + name, wish);
}

Result<PrivateFolder> PrivateFolder::open_below(const std::string& name, Wish wish) const {
  return open_in(descriptor(), name, path_ + "/" + name, wish);
}

Result<PrivateFolder> PrivateFolder::open_in(int parent, const std::string& name, std::string path,
                                             Wish wish) {
  if (wish == Wish::kMade && ::mkdirat(parent, name.c_str(), kOwnersAlone) != 0 && errno != EEXIST)
    return folder_error("making", path);
  FileDescriptor folder(::openat(parent, name.c_str(), kOpenFolder | O_NOFOLLOW));
  if (folder.get() < 0 && (errno == ELOOP || errno == ENOTDIR))
    return invalid_argument("{} is a link or a file, and no folder", path);
  if (folder.get() < 0) return folder_error("opening", path);
  PAGODA_RETURN_IF_ERROR(make_private(folder.get(), path));
  return PrivateFolder(std::move(folder), std::move(path));
}

Result<std::vector<std::string>> PrivateFolder::names() const {
  FileDescriptor again(::openat(descriptor(), ".", kOpenFolder));
  if (again.get() < 0) return folder_error("listing", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), &::closedir);
  if (!entries) return folder_error("listing", path_);
  (void)again.release();  // closedir() closes it
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return folder_error("listing", path_);
  return names;
}

}  // namespace pagoda
