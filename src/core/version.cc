#include "core/version.h"

#include <fmt/format.h>

#include "core/built_commit.h"

namespace pagoda {

std::string_view version() {
  return PAGODA_VERSION;
}

std::string_view commit() {
  return PAGODA_COMMIT;
}

std::string version_and_commit() {
  return commit().empty() ? std::string(version()) : fmt::format("{} ({})", version(), commit());
}

}  // namespace pagoda
