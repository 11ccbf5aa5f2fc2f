// What one client may take of the server: bytes, seconds, connections.
#pragma once

#include <cstddef>

namespace pagoda {

struct HttpLimits {
  std::size_t max_header_bytes = 32 << 10;
  std::size_t max_body_bytes = 16 << 20;
  // All bodies of more than 64 KiB together; one more is answered 503. Small ones are bounded by
  // the connections.
  std::size_t max_total_body_bytes = 256 << 20;
  int max_connections = 1024;     // open at a time; one more is answered 503 and closed
  double header_timeout_s = 20;   // from a request's first byte to the end of its header
  double body_timeout_s = 60;     // from there to the end of its body
  double idle_timeout_s = 75;     // between two requests of a connection
  double write_timeout_s = 60;    // for a client to take some bytes of an answer
  double comment_interval_s = 5;  // of silence in an event stream, after which a comment is sent
  double linger_s = 5;            // for a refused client to read the refusal while it still sends
};

}  // namespace pagoda
