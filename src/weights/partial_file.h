// PartialFile: a file that gets its name once it is whole. Until then it is "NAME.partial-PID" beside
// it, locked as long as its process lives: what killed processes have left under such names goes when
// the next one begins.
//
// Belongs to one thread. Errors of all calls: kResourceExhausted (the disk is full), kInvalidArgument
// (the system's reason: no such folder, no right to write there).
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
  ~PartialFile();  // removes what has not been finished
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Begins an empty file, and removes those of the same name whose processes are gone.
  Status open();
  Status append(std::span<const std::byte> bytes);
  // Gives the file its name, in place of another one's, once the disk has it.
  Status finish();

 private:
  Status failure(int error) const;

  const std::string path_;
  const std::string partial_;
  std::FILE* file_ = nullptr;
};

}  // namespace pagoda
