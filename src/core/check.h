// PAGODA_CHECK: for programming errors, never for bad input from outside (that is a Status). If the
// condition is false, it prints one line and aborts.
#pragma once

#include <string_view>

namespace pagoda {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace pagoda

// PAGODA_CHECK(rows > 0, fmt::format("[linear] expected rows, got {}", rows)); the message is built
// only on failure.
#define PAGODA_CHECK(condition, message)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::pagoda::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
