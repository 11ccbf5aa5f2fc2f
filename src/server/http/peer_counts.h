// PeerCounts: how many connections each peer has open, so that no peer takes the room of all
// others.
//
// A peer is an IPv4 address or an IPv6 network of 64 bits, which is what one machine or household
// is given. The machine's own connections are not counted: a proxy there brings those of all
// clients. Not thread-safe.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <map>

namespace pagoda {

class PeerCounts {
 public:
  explicit PeerCounts(int limit) : limit_(limit) {}

  // Adds a connection; false if the peer has as many as it may; else it has one more, until
  // remove().
  bool add(const boost::asio::ip::address& peer);
  void remove(const boost::asio::ip::address& peer);

 private:
  const int limit_;
  std::map<boost::asio::ip::address, int> counts_;  // of those that have any
};

}  // namespace pagoda
