// MappedFile: a file's bytes, mapped read-only.
//
// A file that is truncated while it is mapped ends the process, as with every memory-mapping
// reader: its pages are gone (SIGBUS). One line on stderr then names the file, and the exit status
// is 1. Replace a checkpoint by renaming, never by writing into it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "quant/host_tensor.h"

namespace pagoda {

// Thread-safe once opened.
class MappedFile : public HostStorage {
 public:
  // Maps a file. kNotFound: no such file, or not readable. kInvalidArgument: not a regular file.
  // kResourceExhausted: no address space. kDataLoss: a pointer of git-lfs in place of the file.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() override;

  std::span<const std::byte> bytes() const { return bytes_; }

  // Releases the whole pages inside `bytes`, which are in this mapping; a page that is shared with
  // a neighbour stays. A later read loads a page from the file again.
  void release_pages(std::span<const std::byte> bytes) const override;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace pagoda
