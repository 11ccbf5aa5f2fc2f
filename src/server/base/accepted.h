// Reads what a client accepts: the headers Accept and Accept-Encoding.
#pragma once

#include <string_view>

namespace pagoda {

// Returns the weight of `name` in the header's list, by its parameter q: 0 to 1. Names are compared
// without regard to case, and other parameters are ignored. -1: it is not in the list, or its
// weight is malformed.
double accepted_weight(std::string_view header, std::string_view name);

}  // namespace pagoda
