// The keys that `pagoda serve` asks for, from wherever an operator keeps them.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "server/http/access.h"

namespace pagoda {

struct ApiKeySources {
  std::vector<std::string> flags;  // of --api-key
  std::string file;                // of --api-key-file; "-": standard input; "": none
  // The value of PAGODA_API_KEY, read where neither flag is given; null: it is not set.
  const char* environment = nullptr;
};

// Reads all keys; none where no source is given. A key is visible ASCII, as an HTTP header can hold
// it, or "sha256:" and the 64 hexadecimal digits of its SHA-256. A line of the file is a key, or a
// name of visible ASCII and a key; empty lines and those that begin with # say nothing. Keys may
// share a name, which is how one takes another's place.
//
// kInvalidArgument:
// - anything else;
// - a key that stands under two names;
// - a source that is given and has no key, or an empty one, even by its digest: a variable that was
//   never set must not open the server.
// Errors name the source, with the line of a file, and never show what is in it.
Result<std::vector<ApiKey>> read_api_keys(const ApiKeySources& sources);

}  // namespace pagoda
