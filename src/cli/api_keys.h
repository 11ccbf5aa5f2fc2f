// The keys that `pagoda serve` asks for, from wherever an operator keeps them.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct ApiKeySources {
  std::vector<std::string> flags;  // of --api-key
  std::string file;                // of --api-key-file: a key a line; "-": standard input; "": none
  // The value of PAGODA_API_KEY, read where neither flag is given; null: it is not set.
  const char* environment = nullptr;
};

// Reads all keys; none where no source is given. kInvalidArgument where a source that is given has
// no key or an empty one: a variable that was never set must not open the server. A key is visible
// ASCII, as an HTTP header can hold it. Errors name the source and never show a key.
Result<std::vector<std::string>> read_api_keys(const ApiKeySources& sources);

}  // namespace pagoda
