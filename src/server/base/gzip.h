// Compresses answers.
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Returns the text in gzip's format, by the fastest level. Throws std::bad_alloc.
std::string gzip(std::string_view text);

}  // namespace pagoda
