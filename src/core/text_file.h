// Small text files, such as those of a checkpoint's folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

// Reads the whole file. kNotFound: there is none. kDataLoss: it can't be read, is larger than a
// tokenizer can be (256 MiB), or is a pointer of git-lfs to it.
Result<std::string> read_text_file(const std::filesystem::path& file);

// Writes the whole file, in the place of what was there. kUnavailable: the system does not take it.
Status write_text_file(const std::filesystem::path& file, std::string_view text);

}  // namespace pagoda
