// Variables of the process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace pagoda {

// Returns the variable's value; empty if it is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace pagoda
