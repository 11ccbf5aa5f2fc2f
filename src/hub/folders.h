#pragma once

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

namespace pagoda {

// The folder of a repository that has a folder for each quantisation that was asked for by name.
inline constexpr std::string_view kQuantizations = "gguf";

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
