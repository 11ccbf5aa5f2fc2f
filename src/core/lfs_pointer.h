// Pointers of git-lfs: what a clone of a repository has in place of a large file that was not fetched.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Checks what a file begins with. kDataLoss, with what to do, names a file that is such a pointer.
inline Status check_no_lfs_pointer(std::string_view beginning, const std::string& file) {
  if (!beginning.starts_with("version https://git-lfs.github.com/spec/")) return ok_status();
  return data_loss(
      "{}: this is a pointer of git-lfs, in place of the file itself; `git lfs pull` in its folder "
      "fetches it",
      file);
}

}  // namespace pagoda
