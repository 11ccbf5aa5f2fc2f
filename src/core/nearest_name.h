// The known name that a mistyped name probably means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Returns the name in `names` that has the fewest edits from `typed`, if they are at most a third
// of its letters. An edit inserts, drops or changes a letter, or swaps two neighbours. Ignores
// case.
std::optional<std::string> nearest_name(std::string_view typed,
                                        const std::vector<std::string>& names);

}  // namespace pagoda
