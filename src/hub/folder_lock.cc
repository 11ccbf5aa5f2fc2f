#include "hub/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

namespace pagoda {
namespace {

namespace fs = std::filesystem;

// Returns whether the path still names the open file.
bool is_same_file(const fs::path& path, int descriptor) {
  struct stat opened, named;
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

Result<FolderLock> FolderLock::take(const fs::path& folder) {
  const fs::path file = folder / ".lock";
  while (true) {
    const int descriptor = open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (descriptor < 0) {
      return unavailable("[pull] {}: {}", file.string(), std::generic_category().message(errno));
    }
    FolderLock lock(file, descriptor);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      return unavailable("[pull] another pull is writing {}", folder.string());
    }
    // Another process may have removed the file after it was opened here.
    if (is_same_file(file, descriptor)) return lock;
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FolderLock::remove_file_if_alone() const {
  std::error_code error;
  const fs::directory_iterator entries(file_.parent_path(), error);
  if (!error && std::distance(begin(entries), end(entries)) == 1) fs::remove(file_, error);
}

}  // namespace pagoda
