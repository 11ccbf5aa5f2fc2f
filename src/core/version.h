#pragma once

#include <string_view>

namespace pagoda {

// Returns the release as CMakeLists.txt's project() names it, "MAJOR.MINOR.PATCH".
std::string_view version();

}  // namespace pagoda
