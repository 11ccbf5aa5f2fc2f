// The folder of what this program keeps for a user and can make again.
#pragma once

#include <filesystem>

#include "core/status.h"

namespace pagoda {

// Returns $XDG_CACHE_HOME/pagoda, or $HOME/.cache/pagoda where that is not set; kNotFound where
// neither is. The folder may not exist. (XDG Base Directory Specification.)
Result<std::filesystem::path> cache_folder();

}  // namespace pagoda
