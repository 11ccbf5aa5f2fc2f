// PeerCounts: how many connections each peer has open, so that no peer can use up those of all
// others.
//
// A peer is an IPv4 address or an IPv6 network of 64 bits, which is what one machine or household
// gets. Connections from the server's own machine are not counted: a proxy there carries those of
// all clients. Not thread-safe.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <map>

namespace pagoda {

class PeerCounts {
 public:
  explicit PeerCounts(int limit) : limit_(limit) {}

  // Adds a connection, until remove(). Returns false if the peer already has as many as it may.
  bool add(const boost::asio::ip::address& peer);
  void remove(const boost::asio::ip::address& peer);

 private:
  const int limit_;
  std::map<boost::asio::ip::address, int> counts_;  // of the peers with connections
};

}  // namespace pagoda
