// PartialFile: a file that gets its name when it is complete. Until then it is "NAME.partial-PID"
// in the same folder, locked as long as its process lives. Opening a PartialFile removes such files
// of the same name that killed processes have left.
//
// Belongs to one thread. Errors of all calls: kResourceExhausted (the disk is full), kUnavailable (the
// system's reason: no such folder, no right to write there).
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "core/status.h"

namespace pagoda {

class PartialFile {
 public:
  explicit PartialFile(std::string path);
  ~PartialFile();  // removes the file if it is not finished
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Creates an empty file, and removes partial files of the same name that killed processes have
  // left.
  Status open();
  Status append(std::span<const std::byte> bytes);
  // Syncs the file to the disk and then gives it its name. It replaces a file of that name.
  Status finish();

 private:
  Status failure(int error) const;

  const std::string path_;
  const std::string partial_;
  std::FILE* file_ = nullptr;
};

}  // namespace pagoda
