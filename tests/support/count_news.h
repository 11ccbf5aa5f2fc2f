// How often this binary has taken memory from the heap: for tests that promise that something takes
// none. Link count_news.cc, which replaces operator new.
#pragma once

#include <cstddef>

namespace pagoda::testing {

std::size_t num_news();  // thread-safe

}  // namespace pagoda::testing
