// Small text files, such as those of a checkpoint's folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Reads the whole file. kNotFound if it does not exist. kDataLoss if it cannot be read, is larger
// than any tokenizer (256 MiB), or is a git-lfs pointer.
Result<std::string> read_text_file(const std::filesystem::path& file);

// Writes the whole file, and replaces an old one. kUnavailable if the system cannot write it.
Status write_text_file(const std::filesystem::path& file, std::string_view text);

}  // namespace pagoda
