#include "server/http/peer_counts.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

boost::asio::ip::address address(const char* text) {
  return boost::asio::ip::make_address(text);
}

TEST(PeerCounts, EachPeerHasItsOwnRoom) {
  PeerCounts peers(2);
  EXPECT_TRUE(peers.add(address("192.0.2.1")));
  EXPECT_TRUE(peers.add(address("::ffff:192.0.2.1")));  // the same address, on a dual-stack socket
  EXPECT_FALSE(peers.add(address("192.0.2.1")));
  EXPECT_TRUE(peers.add(address("192.0.2.2")));
  peers.remove(address("192.0.2.1"));
  EXPECT_TRUE(peers.add(address("192.0.2.1")));
  EXPECT_FALSE(peers.add(address("192.0.2.1")));
}

TEST(PeerCounts, AnIpv6PeerIsANetwork) {
  PeerCounts peers(1);
  EXPECT_TRUE(peers.add(address("2001:db8::1")));
  EXPECT_FALSE(peers.add(address("2001:db8::ffff:2")));
  EXPECT_TRUE(peers.add(address("2001:db8:0:1::1")));
}

TEST(PeerCounts, TheMachinesOwnAreNotCounted) {
  PeerCounts peers(1);
  for (const char* own : {"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(peers.add(address(own)));
    EXPECT_TRUE(peers.add(address(own)));
    peers.remove(address(own));
  }
}

}  // namespace
}  // namespace pagoda
