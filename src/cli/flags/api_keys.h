// Reads the keys that `pagoda serve` accepts, from the places where an operator may keep them.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "server/http/access.h"

namespace pagoda {

struct ApiKeySources {
  std::vector<std::string> flags;  // of --api-key
  std::string file;                // of --api-key-file; "-": standard input; "": none
  // The value of PAGODA_API_KEY, read if neither flag is given; null: the variable is not set.
  const char* environment = nullptr;
};

// Reads all keys; none if no source is given. A key is visible ASCII, as an HTTP header can hold
// it, or "sha256:" and the 64 hexadecimal digits of its SHA-256. A line of the file is a key, or a
// name of visible ASCII and a key. Empty lines and lines that begin with # are ignored. Several
// keys may share a name, so that a new key can replace an old one.
//
// kInvalidArgument:
// - anything else;
// - a key under two names;
// - a source that is given but has no key, or an empty one, even as a digest: a variable that is
//   not set must not open the server.
//
// Errors name the source, and the line of a file, and never show a key.
Result<std::vector<ApiKey>> read_api_keys(const ApiKeySources& sources);

}  // namespace pagoda
