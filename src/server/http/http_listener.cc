#include "server/http/http_listener.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/machine.h"
#include "core/start_thread.h"
#include "server/base/error_response.h"
#include "server/http/http_head.h"
#include "server/http/http_session.h"
#include "server/http/listening_socket.h"
#include "server/http/peer_counts.h"
#include "server/http/tls_tunnel.h"

namespace pagoda {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Descriptors for anything except connections: the acceptor, event queues, files of libraries.
constexpr rlim_t kOtherDescriptors = 64;

// Raises the process's limit of descriptors as far as the system allows. Returns how many of the
// wanted connections it allows: each takes one descriptor, or three with TLS.
int raise_descriptor_limit(int num_wanted, rlim_t num_descriptors_each) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return num_wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
#ifdef __APPLE__
    raised.rlim_cur = std::min<rlim_t>(raised.rlim_cur, OPEN_MAX);  // macOS refuses a higher limit
#endif
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t room =
      (limit.rlim_cur - std::min(limit.rlim_cur / 2, kOtherDescriptors)) / num_descriptors_each;
  if (room >= static_cast<rlim_t>(num_wanted)) return num_wanted;
  log_warning("[server] {} connections at most: the limit of open files is {}", room,
              limit.rlim_cur);
  return static_cast<int>(room);
}

}  // namespace

struct HttpListener::Impl {
  struct Connection {
    asio::awaitable<void> run() const;
    asio::awaitable<void> run_session() const;  // the session behind a tunnel
    void close() const;

    std::shared_ptr<HttpSession> session;
    std::shared_ptr<TlsTunnel> tunnel;  // between client and session; null: plain HTTP
  };

  Impl(const ListenerOptions& options, HttpHandler handler, HttpGate gate)
      : limits(options.limits),
        gate(std::move(gate)),
        write_error(options.write_error),
        handler(std::move(handler)),
        memory(options.memory),
        access_log(options.observer, options.log_format),
        acceptor(asio::make_strand(context)),
        peers(std::max(1, static_cast<int>(limits.max_connections * limits.max_peer_share))) {}

  Status listen(const ListenerOptions& options);
  asio::awaitable<void> accept_loop();
  void serve(StreamSocket socket);
  Result<std::shared_ptr<Connection>> connect(StreamSocket socket,
                                              const std::shared_ptr<asio::ssl::context>& tls);
  void refuse(StreamSocket socket, std::string message);
  asio::awaitable<void> run(std::shared_ptr<Connection> connection, asio::ip::address peer);

  const HttpLimits limits;
  const HttpGate gate;
  const ErrorWriter write_error;
  const HttpHandler handler;
  const std::shared_ptr<RequestMemory> memory;
  AccessLog access_log;
  asio::io_context context;
  asio::io_context large_bodies;  // see parse_request.h
  asio::executor_work_guard<asio::io_context::executor_type> keeps_large_bodies{
      large_bodies.get_executor()};
  StreamAcceptor acceptor;
  std::unique_ptr<TlsCertificate> certificate;  // null: plain HTTP
  std::uint16_t port = 0;
  std::string path;  // of the socket that the listener has made; empty: none
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable connection_ended;
  std::set<std::shared_ptr<Connection>> connections;
  std::set<std::shared_ptr<Connection>> late_connections;  // drain() does not wait for them
  PeerCounts peers;                                        // the peers of all connections
  bool draining = false;
  bool stopping = false;
};

asio::awaitable<void> HttpListener::Impl::Connection::run() const {
  using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  if (!tunnel) {
    co_await session->run();
    co_return;
  }
  co_await (run_session() && tunnel->run());
}

asio::awaitable<void> HttpListener::Impl::Connection::run_session() const {
  co_await session->run();
  tunnel->end_is_closed();
}

void HttpListener::Impl::Connection::close() const {
  session->close();
  if (tunnel) tunnel->close();
}

Status HttpListener::Impl::listen(const ListenerOptions& options) {
  if (!options.tls.certificate.empty()) {
    PAGODA_ASSIGN_OR_RETURN(certificate, TlsCertificate::load(options.tls));
  }
  if (options.path.empty()) {
    PAGODA_ASSIGN_OR_RETURN(port, listen_on_address(acceptor, options.host, options.port));
    return ok_status();
  }
  PAGODA_RETURN_IF_ERROR(listen_on_path(acceptor, options.path));
  path = options.path;
  return ok_status();
}

asio::awaitable<void> HttpListener::Impl::accept_loop() {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    error_code error;
    StreamSocket socket(asio::make_strand(context));
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      serve(std::move(socket));
    } else if (error != asio::error::operation_aborted) {
      // Most likely no descriptor is free. Without a pause, the loop would spin until one is.
      log_warning("[server] accept: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpListener::Impl::serve(StreamSocket socket) {
  const auto executor = socket.get_executor();
  const asio::ip::address peer = peer_of(socket);
  const auto tls = certificate ? certificate->context() : nullptr;
  std::unique_lock lock(mutex);
  if (stopping) return;
  const std::size_t num_open = connections.size() + late_connections.size();
  const bool has_room = static_cast<int>(num_open) < limits.max_connections;
  if (!has_room || !peers.add(peer)) {
    lock.unlock();
    const std::string whose = has_room ? " from this address" : "";
    return refuse(std::move(socket), "too many connections are open" + whose);
  }
  auto connection = connect(std::move(socket), tls);
  if (!connection.ok()) {
    peers.remove(peer);
    return log_warning("{}", connection.status().message());
  }
  (draining ? late_connections : connections).insert(*connection);
  if (draining) (*connection)->session->drain();
  lock.unlock();
  asio::co_spawn(executor, run(*std::move(connection), peer), asio::detached);
}

// Makes a connection. Called with the mutex locked. `tls`: null for plain HTTP.
Result<std::shared_ptr<HttpListener::Impl::Connection>> HttpListener::Impl::connect(
    StreamSocket socket, const std::shared_ptr<asio::ssl::context>& tls) {
  auto connection = std::make_shared<Connection>();
  if (tls) {
    StreamSocket client = std::move(socket);
    socket = StreamSocket(client.get_executor());
    PAGODA_ASSIGN_OR_RETURN(connection->tunnel,
                            TlsTunnel::open(std::move(client), socket, tls, limits));
  }
  connection->session = std::make_shared<HttpSession>(
      std::move(socket), HttpSession::Shared{limits, gate, handler, memory, access_log, write_error,
                                             large_bodies.get_executor()});
  return connection;
}

// Sends a refusal, which fits any send buffer, without waiting for the client. A client of a TLS
// port gets none, since it would accept no answer before a handshake.
void HttpListener::Impl::refuse(StreamSocket socket, std::string message) {
  HttpResponse response = error_response({503, std::move(message), "", "too_many_connections"});
  response.body = error_body(*response.error);
  const std::string id = request_id_for("");
  const std::string bytes =
      whole_head({.status = 503, .close = true, .request_id = id}, response) + response.body;
  error_code ignored;
  socket.non_blocking(true, ignored);
  const std::size_t num_bytes = certificate ? 0 : socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(asio::socket_base::shutdown_both, ignored);
  access_log.write({.status = 503, .num_bytes = num_bytes, .request_id = id});
}

asio::awaitable<void> HttpListener::Impl::run(std::shared_ptr<Connection> connection,
                                              asio::ip::address peer) {
  co_await connection->run();
  std::lock_guard lock(mutex);
  peers.remove(peer);
  connections.erase(connection);
  late_connections.erase(connection);
  connection_ended.notify_all();
}

HttpListener::HttpListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpListener>> HttpListener::start(const ListenerOptions& options,
                                                          HttpHandler handler, HttpGate gate) {
  ListenerOptions effective = options;
  effective.limits.max_connections = raise_descriptor_limit(
      options.limits.max_connections, options.tls.certificate.empty() ? 1 : 3);
  auto impl = std::make_unique<Impl>(effective, std::move(handler), std::move(gate));
  PAGODA_RETURN_IF_ERROR(impl->listen(options));
  asio::co_spawn(impl->acceptor.get_executor(), impl->accept_loop(), asio::detached);
  std::unique_ptr<HttpListener> listener(new HttpListener(std::move(impl)));
  for (int i = 0; i < options.num_threads; ++i) {
    listener->impl_->threads.push_back(start_thread([context = &listener->impl_->context] {
      // A token that is ready must not wait while the next one is computed.
      ask_for_short_slices();
      context->run();
    }));
  }
  listener->impl_->threads.push_back(start_thread([context = &listener->impl_->large_bodies] {
    give_way();
    context->run();
  }));
  return listener;
}

HttpListener::~HttpListener() {
  stop(0);
}

std::uint16_t HttpListener::port() const {
  return impl_->port;
}

int HttpListener::num_connections() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->connections.size() + impl_->late_connections.size());
}

bool HttpListener::drain(double deadline_s) {
  Impl& impl = *impl_;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline_s);
  std::unique_lock lock(impl.mutex);
  impl.draining = true;
  for (auto it = impl.connections.begin(); it != impl.connections.end();) {
    (*it)->session->drain();
    if ((*it)->session->has_begun()) {
      ++it;
    } else {
      impl.late_connections.insert(impl.connections.extract(it++));
    }
  }
  return impl.connection_ended.wait_until(lock, until,
                                          [&impl] { return impl.connections.empty(); });
}

void HttpListener::stop(double deadline_s) {
  Impl& impl = *impl_;
  if (impl.threads.empty()) return;
  asio::post(impl.acceptor.get_executor(), [&impl] {
    error_code ignored;
    if (!impl.path.empty()) ::unlink(impl.path.c_str());  // before another server can listen there
    impl.acceptor.close(ignored);
  });
  {
    std::lock_guard lock(impl.mutex);
    impl.stopping = true;
  }
  drain(deadline_s);
  {
    std::unique_lock lock(impl.mutex);
    for (const auto& connection : impl.connections) connection->close();
    for (const auto& connection : impl.late_connections) connection->close();
    impl.connection_ended.wait(
        lock, [&impl] { return impl.connections.empty() && impl.late_connections.empty(); });
  }
  // No connection is left. Without this guard no work is left, so run() returns on every thread.
  impl.keeps_large_bodies.reset();
  for (std::thread& thread : impl.threads) thread.join();
  impl.threads.clear();
}

}  // namespace pagoda
