// Limits of what one client may take of the server: bytes, seconds, connections.
#pragma once

#include <cstddef>

namespace pagoda {

// A body up to this is small: it is read in small pieces, and what is left of it may be skipped.
inline constexpr std::size_t kSmallBodyBytes = 16 << 10;

struct HttpLimits {
  // The most bytes of a request's header; and as many again around the pieces of a chunked body.
  std::size_t max_header_bytes = 32 << 10;
  std::size_t max_header_fields = 128;
  std::size_t max_body_bytes = 16 << 20;
  // Open at a time, and fewer where the system's limit of descriptors is lower; one more is
  // answered 503 and closed. Far above max_queue: a full queue is told apart from a full house.
  int max_connections = 8192;
  // The share of those connections that one peer may have (peer_counts.h); one more is answered in
  // the same way. A proxy or a network behind one address has most of the server, and never all.
  double max_peer_share = 0.75;
  double header_timeout_s = 20;   // from a request's first byte to the end of its header
  double body_timeout_s = 60;     // from there to the end of its body
  double body_silence_s = 10;     // in which nothing comes of a body
  double idle_timeout_s = 75;     // between two requests of a connection
  double write_timeout_s = 60;    // for a client to take some bytes of an answer
  double comment_interval_s = 5;  // of silence in an event stream, after which a comment is sent
  double probe_after_s = 30;      // of silence, a peer is asked whether it is still there
  double linger_s = 5;            // for a refused client to read the refusal while it still sends
};

}  // namespace pagoda
