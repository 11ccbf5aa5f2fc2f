// ServerUrl: the address of an OpenAI-compatible server.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace pagoda {

struct ServerUrl {
  bool is_https = false;
  std::string host;  // a name, or an address without brackets
  std::string port = "80";
  std::string prefix;  // put before every path: "" or "/some/where"

  // Returns the URL for messages: "http://host:port" or "https://host:port", and the prefix.
  std::string text() const;
  // Returns the value of the Host header.
  std::string authority() const;
};

// Parses "http://HOST[:PORT][/PREFIX]" or https, with or without a trailing "/" or "/v1". Other
// texts give kInvalidArgument, which names the flag.
Result<ServerUrl> parse_server_url(std::string_view flag, std::string_view text);

}  // namespace pagoda
