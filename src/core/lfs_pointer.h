// Pointers of git-lfs: small files that a clone has in place of large files that were not fetched.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Checks the beginning of a file. If it is a pointer, kDataLoss names the file and says what to do.
inline Status check_no_lfs_pointer(std::string_view beginning, const std::string& file) {
  if (!beginning.starts_with("version https://git-lfs.github.com/spec/")) return ok_status();
  return data_loss(
      "{}: this is a pointer of git-lfs, in place of the file itself; `git lfs pull` in its folder "
      "fetches it",
      file);
}

}  // namespace pagoda
