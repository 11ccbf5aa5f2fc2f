#include "server/http/peer_counts.h"

#include <algorithm>

namespace pagoda {
namespace {

namespace ip = boost::asio::ip;

ip::address peer_of(const ip::address& address) {
  if (address.is_v4()) return address;
  const ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6);
  ip::address_v6::bytes_type bytes = v6.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::make_address_v6(bytes);
}

bool is_own(const ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return peer_of(address).is_loopback();
  return address.is_loopback();
}

}  // namespace

bool PeerCounts::add(const ip::address& peer) {
  if (is_own(peer)) return true;
  int& count = counts_[peer_of(peer)];
  if (count >= limit_) return false;
  ++count;
  return true;
}

void PeerCounts::remove(const ip::address& peer) {
  if (is_own(peer)) return;
  const auto found = counts_.find(peer_of(peer));
  if (--found->second == 0) counts_.erase(found);
}

}  // namespace pagoda
