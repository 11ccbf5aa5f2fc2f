// FolderLock: keeps other processes from writing to a repository's folder, or removing it. The
// kernel releases it however the process ends. Movable; thread-compatible.
#pragma once

#include <filesystem>
#include <utility>

#include "core/status.h"

namespace pagoda {

class FolderLock {
 public:
  // Locks `folder` by its file ".lock", which is made if it is missing. kUnavailable: another
  // process has the lock, or the file cannot be opened.
  static Result<FolderLock> take(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept
      : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~FolderLock();

  // Removes the lock's file if the folder has no other entry. The lock stays taken.
  void remove_file_if_alone() const;

 private:
  FolderLock(std::filesystem::path file, int descriptor)
      : file_(std::move(file)), descriptor_(descriptor) {}
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace pagoda
