#include "server/http/listening_socket.h"

#include <sys/un.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>
#include <filesystem>

namespace pagoda {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::ip::tcp;
using boost::system::error_code;
using LocalEndpoint = asio::local::stream_protocol::endpoint;

constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un{}.sun_path) - 1;

Result<tcp::endpoint> resolve(const std::string& host, std::uint16_t port) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(address, port);
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return invalid_argument(
        "[server] host {}: expected an address or a name that resolves, got: {}", host,
        error.message());
  }
  return found.begin()->endpoint();
}

error_code listen_on(StreamAcceptor& acceptor, const asio::generic::stream_protocol& protocol,
                     const asio::generic::stream_protocol::endpoint& endpoint) {
  error_code error;
  acceptor.open(protocol, error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

template <typename Endpoint>
Endpoint endpoint_of(const asio::generic::stream_protocol::endpoint& generic) {
  Endpoint endpoint;
  std::memcpy(endpoint.data(), generic.data(), std::min(generic.size(), endpoint.capacity()));
  return endpoint;
}

// Removes the socket at a path unless a process listens on it. Other files stay.
void remove_left_socket(const std::string& path) {
  error_code error;
  std::error_code ignored;
  if (!fs::is_socket(path, ignored)) return;
  asio::io_context context;
  asio::local::stream_protocol::socket probe(context);
  probe.connect(LocalEndpoint(path), error);
  if (error == asio::error::connection_refused) fs::remove(path, ignored);
}

}  // namespace

Result<std::uint16_t> listen_on_address(StreamAcceptor& acceptor, const std::string& host,
                                        std::uint16_t port) {
  PAGODA_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, resolve(host, port));
  error_code error = listen_on(acceptor, endpoint.protocol(), endpoint);
  const auto bound = error ? StreamAcceptor::endpoint_type() : acceptor.local_endpoint(error);
  if (error) {
    return unavailable("[server] {}:{}: expected an address that is free to listen on, got: {}",
                       host, port, error.message());
  }
  return endpoint_of<tcp::endpoint>(bound).port();
}

Status listen_on_path(StreamAcceptor& acceptor, const std::string& path) {
  if (path.size() > kMaxPathBytes) {
    return invalid_argument("[server] {}: expected a path of at most {} bytes, got {}", path,
                            kMaxPathBytes, path.size());
  }
  remove_left_socket(path);
  const LocalEndpoint endpoint(path);
  if (const error_code error = listen_on(acceptor, endpoint.protocol(), endpoint)) {
    return unavailable("[server] {}: expected a path that is free to listen on, got: {}", path,
                       error.message());
  }
  return ok_status();
}

asio::ip::address peer_of(const StreamSocket& socket) {
  error_code gone;
  const auto peer = socket.remote_endpoint(gone);
  if (gone) return {};
  if (peer.protocol().family() == AF_UNIX) return asio::ip::address_v4::loopback();
  return endpoint_of<tcp::endpoint>(peer).address();
}

}  // namespace pagoda
