#include "server/http_listener.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
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

#include "core/machine.h"
#include "server/api_error.h"
#include "server/http_head.h"
#include "server/http_session.h"
#include "server/listening_socket.h"
#include "server/peer_counts.h"

namespace pagoda {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Files that are no connections: the acceptor, the event queues, what a library opens.
constexpr rlim_t kOtherDescriptors = 64;

// Every connection is a descriptor: takes what the system allows, and returns how many connections
// that is, of those wanted.
int raise_descriptor_limit(int num_wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return num_wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
#ifdef __APPLE__
    raised.rlim_cur = std::min<rlim_t>(raised.rlim_cur, OPEN_MAX);  // more is refused
#endif
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t room = limit.rlim_cur - std::min(limit.rlim_cur / 2, kOtherDescriptors);
  if (room >= static_cast<rlim_t>(num_wanted)) return num_wanted;
  spdlog::warn("[server] {} connections at most: the limit of open files is {}", room,
               limit.rlim_cur);
  return static_cast<int>(room);
}

}  // namespace

struct HttpListener::Impl {
  Impl(const ListenerOptions& options, HttpHandler handler, HttpGate gate)
      : limits(options.limits),
        gate(std::move(gate)),
        handler(std::move(handler)),
        body_budget(std::make_shared<BodyBudget>(limits.max_total_body_bytes)),
        access_log(options.observer, options.log_format),
        acceptor(asio::make_strand(context)),
        peers(std::max(1, static_cast<int>(limits.max_connections * limits.max_peer_share))) {}

  Status listen(const ListenerOptions& options);
  asio::awaitable<void> accept_loop();
  void serve(StreamSocket socket);
  void refuse(StreamSocket socket, std::string message);
  asio::awaitable<void> run_session(std::shared_ptr<HttpSession> session, asio::ip::address peer);

  const HttpLimits limits;
  const HttpGate gate;
  const HttpHandler handler;
  const std::shared_ptr<BodyBudget> body_budget;
  AccessLog access_log;
  asio::io_context context;
  StreamAcceptor acceptor;
  std::uint16_t port = 0;
  std::string path;  // that this has made a socket of; empty: none
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable session_ended;
  std::set<std::shared_ptr<HttpSession>> sessions;
  std::set<std::shared_ptr<HttpSession>> late_sessions;  // which no drain() waits for
  PeerCounts peers;                                      // of both
  bool draining = false;
  bool stopping = false;
};

Status HttpListener::Impl::listen(const ListenerOptions& options) {
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
      // Out of descriptors, most likely: without a pause this would spin until one is free.
      spdlog::warn("[server] accept: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpListener::Impl::serve(StreamSocket socket) {
  const auto executor = socket.get_executor();
  const asio::ip::address peer = peer_of(socket);
  std::shared_ptr<HttpSession> session;
  std::string refusal = "too many connections are open";
  {
    std::lock_guard lock(mutex);
    if (stopping) return;
    const std::size_t num_sessions = sessions.size() + late_sessions.size();
    const bool has_room = static_cast<int>(num_sessions) < limits.max_connections;
    if (has_room && !peers.add(peer)) {
      refusal += " from this address";
    } else if (has_room) {
      session = std::make_shared<HttpSession>(
          std::move(socket), HttpSession::Shared{limits, gate, handler, body_budget, access_log},
          draining ? HttpSession::Serves::kOneRequest : HttpSession::Serves::kAll);
      (draining ? late_sessions : sessions).insert(session);
    }
  }
  // Without a session the socket has not been moved.
  if (!session)
    return refuse(std::move(socket), std::move(refusal));  // NOLINT(bugprone-use-after-move)
  asio::co_spawn(executor, run_session(std::move(session), peer), asio::detached);
}

// The refusal fits any send buffer, so this does not wait for the client.
void HttpListener::Impl::refuse(StreamSocket socket, std::string message) {
  const std::string body = error_body({503, std::move(message), "", "too_many_connections"});
  const std::string id = request_id_for("");
  const std::string bytes = fmt::format(
      "{}Retry-After: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      response_head({.status = 503, .close = true, .request_id = id}), body.size(), body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  const std::size_t num_bytes = socket.write_some(asio::buffer(bytes), ignored);
  socket.shutdown(asio::socket_base::shutdown_both, ignored);
  access_log.write({.status = 503, .num_bytes = num_bytes, .request_id = id});
}

asio::awaitable<void> HttpListener::Impl::run_session(std::shared_ptr<HttpSession> session,
                                                      asio::ip::address peer) {
  co_await session->run();
  std::lock_guard lock(mutex);
  peers.remove(peer);
  sessions.erase(session);
  late_sessions.erase(session);
  session_ended.notify_all();
}

HttpListener::HttpListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpListener>> HttpListener::start(const ListenerOptions& options,
                                                          HttpHandler handler, HttpGate gate) {
  ListenerOptions effective = options;
  effective.limits.max_connections = raise_descriptor_limit(options.limits.max_connections);
  auto impl = std::make_unique<Impl>(effective, std::move(handler), std::move(gate));
  PAGODA_RETURN_IF_ERROR(impl->listen(options));
  asio::co_spawn(impl->acceptor.get_executor(), impl->accept_loop(), asio::detached);
  for (int i = 0; i < options.num_threads; ++i) {
    impl->threads.emplace_back([context = &impl->context] {
      ask_for_short_slices();  // a token that is there is not to wait while the next is computed
      context->run();
    });
  }
  return std::unique_ptr<HttpListener>(new HttpListener(std::move(impl)));
}

HttpListener::~HttpListener() {
  stop(0);
}

std::uint16_t HttpListener::port() const {
  return impl_->port;
}

int HttpListener::num_connections() const {
  std::lock_guard lock(impl_->mutex);
  return static_cast<int>(impl_->sessions.size() + impl_->late_sessions.size());
}

bool HttpListener::drain(double deadline_s) {
  Impl& impl = *impl_;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline_s);
  std::unique_lock lock(impl.mutex);
  impl.draining = true;
  for (const auto& session : impl.sessions) session->drain();
  return impl.session_ended.wait_until(lock, until, [&impl] { return impl.sessions.empty(); });
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
    for (const auto& session : impl.late_sessions) session->drain();
  }
  drain(deadline_s);
  {
    std::unique_lock lock(impl.mutex);
    for (const auto& session : impl.sessions) session->close();
    for (const auto& session : impl.late_sessions) session->close();
    impl.session_ended.wait(
        lock, [&impl] { return impl.sessions.empty() && impl.late_sessions.empty(); });
  }
  // Nothing is left to do: run() returns by itself on every thread.
  for (std::thread& thread : impl.threads) thread.join();
  impl.threads.clear();
}

}  // namespace pagoda
