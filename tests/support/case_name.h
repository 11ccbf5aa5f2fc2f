// Names of parametrised cases that have a `name`.
#pragma once

#include <string>

namespace pagoda::testing {

// Returns the `name` of a case, for INSTANTIATE_TEST_SUITE_P.
inline constexpr auto kCaseName = [](const auto& info) { return std::string(info.param.name); };

}  // namespace pagoda::testing
