// The name that a mistyped one was meant to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Returns the name of `names` that is fewest letters away from `typed`, if that is no more than a
// third of them. A letter is inserted, dropped, changed or swapped with a neighbour. Case makes no
// difference.
std::optional<std::string> nearest_name(std::string_view typed,
                                        const std::vector<std::string>& names);

}  // namespace pagoda
