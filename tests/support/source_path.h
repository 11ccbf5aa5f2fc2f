// Paths of the files of this checkout, for tests.
#pragma once

#include <string>
#include <string_view>

namespace pagoda::testing {

// Returns the absolute path of a file or folder that is named from the project's root, such as
// "tests/golden/data/tiny-llama". Callable before main().
std::string source_path(std::string_view from_root);

}  // namespace pagoda::testing
