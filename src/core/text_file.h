// Small text files, such as those of a checkpoint's folder.
#pragma once

#include <filesystem>
#include <string>

#include "core/status.h"

namespace pagoda {

// Reads the whole file. kNotFound where there is none, kDataLoss for one that can't be read or is
// larger than a tokenizer can be (256 MiB).
Result<std::string> read_text_file(const std::filesystem::path& file);

}  // namespace pagoda
