// Variables of the process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace pagoda {

// Returns the variable's value; empty where there is none.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace pagoda
