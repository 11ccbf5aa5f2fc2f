// BlockFiles: the files of DiskCache, by name: "<scope>/<2 digits>/<digest>", in hexadecimal digits.
//
// The files are in a folder kBlockFolderName that belongs to this user. Its parent may be shared
// with other users (kv/private_folder.h). Folders are made with mode 0700 and files with 0600.
// Links are not followed, and files of other users are not read. Files with other names are left
// alone. A file is written under another name and then renamed, so it appears under its own name
// only when complete. Nothing is synced. A file that a killed process has not completed is in
// list(), under its temporary name.
//
// Belongs to one thread; several processes may use the same folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct BlockFileEntry {
  std::string name;
  std::int64_t num_bytes = 0;
  std::int64_t used_ns = 0;  // when it was written or last read, since 1970
};

class BlockFiles {
 public:
  virtual ~BlockFiles() = default;

  virtual Result<std::vector<BlockFileEntry>> list() = 0;
  // Reads a file. kDataLoss: it has another size; kNotFound: there is none; kUnavailable: a system
  // error.
  virtual Status read(const std::string& name, std::size_t expected_size,
                      std::vector<std::byte>& bytes) = 0;
  // Writes a file, whole or not at all. kUnavailable: a system error.
  virtual Status write(const std::string& name, std::span<const std::byte> bytes) = 0;
  // Removes a file; ok if there is none. kUnavailable: a system error.
  virtual Status remove(const std::string& name) = 0;
  // Sets when a file was last used. A file that cannot be changed stays as it is.
  virtual void mark_used(const std::string& name, std::int64_t used_ns) = 0;
};

// Opens the folder kBlockFolderName in `parent`, and makes both if they do not exist.
// kInvalidArgument: they cannot be made, no file can be written there, or PrivateFolder::open()
// refuses them.
Result<std::unique_ptr<BlockFiles>> open_block_files(const std::string& parent);
inline constexpr std::string_view kBlockFolderName = "pagoda-prefix-cache";

}  // namespace pagoda
