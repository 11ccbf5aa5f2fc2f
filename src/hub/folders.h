#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

namespace pagoda {

// Returns the folders in `folder`, sorted by name; none if it cannot be read.
inline std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->is_directory(ignored)) folders.push_back(each->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace pagoda
