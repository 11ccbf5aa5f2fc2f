// Sockets that listen, on a network address or on a path of the file system, and the sockets of
// accepted connections. Each has one type for both.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <string>

#include "core/status.h"

namespace pagoda {

using StreamSocket = boost::asio::generic::stream_protocol::socket;
using StreamAcceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// Listens on an address, and returns its port. For a `port` of 0 the system chooses one.
// kUnavailable: the address can't be bound; kInvalidArgument: the host does not resolve.
Result<std::uint16_t> listen_on_address(StreamAcceptor& acceptor, const std::string& host,
                                        std::uint16_t port);

// Listens on a path. A socket on which no process listens, such as a killed server leaves, is
// replaced. kUnavailable: another server listens there, or the path can't be bound;
// kInvalidArgument: the path is longer than the system allows.
Status listen_on_path(StreamAcceptor& acceptor, const std::string& path);

// Returns a connection's peer: loopback for a path's socket, 0.0.0.0 for a peer that has gone.
boost::asio::ip::address peer_of(const StreamSocket& socket);

}  // namespace pagoda
