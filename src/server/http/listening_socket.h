// Sockets that listen, on an address of the network or on a path of the file system, and those of
// the connections that they accept: one type for both.
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

// Listens on an address, and returns its port, which the system chooses for a `port` of 0.
// kUnavailable: the address can't be bound; kInvalidArgument: the host does not resolve.
Result<std::uint16_t> listen_on_address(StreamAcceptor& acceptor, const std::string& host,
                                        std::uint16_t port);

// Listens on a path. A socket that no process listens on, as a killed server leaves, is replaced.
// kUnavailable: another server listens there, or the path can't be bound; kInvalidArgument: it is
// longer than the system takes.
Status listen_on_path(StreamAcceptor& acceptor, const std::string& path);

// Returns a connection's peer. That of a path's socket has the machine's own address; one that is
// gone already has 0.0.0.0.
boost::asio::ip::address peer_of(const StreamSocket& socket);

}  // namespace pagoda
