// BlockFiles: the files of DiskCache, by name: "<scope>/<2 digits>/<digest>", in hexadecimal digits.
//
// Folders are made with mode 0700 and files with 0600. What has another name is left alone. Files
// come under their names whole: they are written under another one and then renamed, which is not
// synced. What a process that was killed left half written is one of the files in list(), under the
// name that it had.
//
// Belongs to one thread; several processes may have the same folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct BlockFileEntry {
  std::string name;
  std::int64_t num_bytes = 0;
  std::int64_t used_ns = 0;  // when it was written or last read; since 1970
};

class BlockFiles {
 public:
  virtual ~BlockFiles() = default;

  virtual Result<std::vector<BlockFileEntry>> list() = 0;
  // Reads a file; one of another size is kDataLoss. kNotFound: it is not there; kUnavailable: the
  // system says why.
  virtual Status read(const std::string& name, std::size_t expected_size,
                      std::vector<std::byte>& bytes) = 0;
  // Writes a file, whole or not at all. kUnavailable: the system says why.
  virtual Status write(const std::string& name, std::span<const std::byte> bytes) = 0;
  // Removes a file; one that is not there is removed. kUnavailable as above.
  virtual Status remove(const std::string& name) = 0;
  // Notes when a file was last used; one that cannot be changed stays as it is.
  virtual void mark_used(const std::string& name, std::int64_t used_ns) = 0;
};

// Opens a folder, which is made where it is not there. kInvalidArgument: it cannot be made, or no
// file can be written in it.
Result<std::unique_ptr<BlockFiles>> open_block_files(const std::string& folder);

}  // namespace pagoda
