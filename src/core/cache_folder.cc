#include "core/cache_folder.h"

#include <cstdlib>

namespace pagoda {

Result<std::filesystem::path> cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "pagoda";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "pagoda";
  }
  return not_found("expected XDG_CACHE_HOME or HOME to be set");
}

}  // namespace pagoda
