#include "core/cache_folder.h"

#include <string>

#include "core/environment.h"

namespace pagoda {

Result<std::filesystem::path> cache_folder() {
  namespace fs = std::filesystem;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "pagoda";
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "pagoda";
  }
  return not_found("expected XDG_CACHE_HOME or HOME to be set");
}

}  // namespace pagoda
