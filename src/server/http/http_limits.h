// Limits of what clients may use of the server: bytes, seconds, connections.
#pragma once

#include <cstddef>

namespace pagoda {

// The most bytes of a small body. It is read in small pieces, and the rest of it may be skipped.
inline constexpr std::size_t kSmallBodyBytes = 16 << 10;

struct HttpLimits {
  // The most bytes of a request's header. As many again may stand around the chunks of a body.
  std::size_t max_header_bytes = 32 << 10;
  std::size_t max_header_fields = 128;
  std::size_t max_body_bytes = 16 << 20;
  // The most open connections; fewer if the system's limit of descriptors is lower. One more is
  // answered 503 and closed. It is far above max_queue, so that a full queue has its own error.
  int max_connections = 8192;
  // The share of those connections that one peer may have (peer_counts.h). One more is answered in
  // the same way. So a proxy or network behind one address never has the whole server.
  double max_peer_share = 0.75;
  double header_timeout_s = 20;   // from a request's first byte to the end of its header
  double body_timeout_s = 60;     // from the header's end to the body's end
  double body_silence_s = 10;     // the longest pause within a body
  double idle_timeout_s = 75;     // the longest pause between two requests of a connection
  double write_timeout_s = 60;    // for a client to take some bytes of an answer
  double comment_interval_s = 5;  // silence in an event stream before a comment is sent
  double probe_after_s = 30;      // silence before a peer is asked whether it is still there
  double linger_s = 5;  // time for a refused client to read the refusal while it still sends
};

}  // namespace pagoda
