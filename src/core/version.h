#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Returns the release as CMakeLists.txt's project() names it, "MAJOR.MINOR.PATCH".
std::string_view version();

// Returns the commit that was checked out when this was built, twelve digits; empty if it is
// unknown.
std::string_view commit();

// Returns the release and the commit in one text: "0.2.0 (0123456789ab)".
std::string version_and_commit();

}  // namespace pagoda
