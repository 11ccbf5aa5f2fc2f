// BlockFiles: the files of DiskCache, by name: "<scope>/<2 digits>/<digest>", in hexadecimal digits.
//
// They lie in a folder of this user's own in the one that is given, which may be shared with others
// (kv/private_folder.h). Folders are made with mode 0700 and files with 0600; links are not followed,
// and files of other users are no blocks. Files with other names are left alone. Files come under
// their names whole: they are written under another one and then renamed, which is not synced. A
// file that a killed process left half written is in list(), under the name that it had.
//
// Belongs to one thread; several processes may have the same folder.
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

// Opens the folder of that name in `parent`; both are made where they are not there.
// kInvalidArgument: they cannot be, no file can be written there, or PrivateFolder::open() refuses
// them.
Result<std::unique_ptr<BlockFiles>> open_block_files(const std::string& parent);
inline constexpr std::string_view kBlockFolderName = "pagoda-prefix-cache";

}  // namespace pagoda
