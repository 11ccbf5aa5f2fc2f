// The folder of data that this program keeps for a user and can recreate.
#pragma once

#include <filesystem>

#include "core/status.h"

namespace pagoda {

// Returns $XDG_CACHE_HOME/pagoda, or $HOME/.cache/pagoda if XDG_CACHE_HOME is not set. kNotFound if
// neither is set. The folder may not exist. (XDG Base Directory Specification.)
Result<std::filesystem::path> cache_folder();

}  // namespace pagoda
