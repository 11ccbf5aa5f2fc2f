// ServerUrl: where an OpenAI-compatible server is.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

struct ServerUrl {
  bool is_https = false;
  std::string host;  // a name, or an address without brackets
  std::string port = "80";
  std::string prefix;  // of every path: "" or "/some/where"

  // Returns "http://host:port" + prefix, or https, as errors show it.
  std::string text() const;
  // Returns the Host header.
  std::string authority() const;
};

// Parses "http://HOST[:PORT][/PREFIX]" or https, with or without a trailing "/" or "/v1".
// kInvalidArgument otherwise, in the name of the flag that had it.
Result<ServerUrl> parse_server_url(std::string_view flag, std::string_view text);

}  // namespace pagoda
