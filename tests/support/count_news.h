// Counts how often this binary allocates from the heap, for tests that expect no allocation. Link
// count_news.cc, which replaces operator new.
#pragma once

#include <cstddef>

namespace pagoda::testing {

std::size_t num_news();  // thread-safe

}  // namespace pagoda::testing
