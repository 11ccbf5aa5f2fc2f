#include "server/http/http_session.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>

#include "core/log.h"
#include "core/memory_reserve.h"
#include "server/base/api_error.h"
#include "server/base/error_response.h"
#include "server/http/http_head.h"
#include "server/http/parse_request.h"

namespace pagoda {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using TimePoint = asio::steady_timer::time_point;

constexpr std::size_t kHeadReadBytes = 4096;
// The most bytes that are read from a client while one of its requests is answered. Beyond it, a
// disconnect is noticed only by writing.
constexpr std::size_t kMaxPipelinedBytes = 16 << 10;

// The most bytes of a body that is sent in one piece with its head.
constexpr std::size_t kMaxJoinedBytes = 4 << 10;

}  // namespace

// The state that replies' Wakes share. Used only on the strand, except for `posted`.
struct HttpSession::WakeState {
  explicit WakeState(const asio::any_io_executor& executor) : strand(executor), timer(executor) {}

  asio::any_io_executor strand;
  asio::steady_timer timer;
  bool signalled = false;
  std::atomic<bool> posted = false;

  void signal() {
    signalled = true;
    timer.cancel();
  }
};

HttpSession::HttpSession(StreamSocket socket, const Shared& shared)
    : socket_(std::move(socket)),
      shared_(shared),
      limits_(shared.limits),
      buffer_(std::max(limits_.max_header_bytes, kMaxPipelinedBytes) +
              HttpRequestParser::kMaxReadBytes),
      wake_(std::make_shared<WakeState>(socket_.get_executor())),
      deadline_(std::make_shared<SocketDeadline>(socket_)) {}

asio::awaitable<void> HttpSession::run() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  deadline_->start(limits_);
  try {
    while (!closed_) {
      idle_ = true;
      const bool has_byte = co_await wait_for_first_byte();
      idle_ = false;
      if (!has_byte) break;
      has_begun_ = true;
      num_written_ = 0;
      const bool goes_on = co_await serve_request();
      if (!goes_on) break;
    }
  } catch (const std::exception& error) {
    log_error("[server] connection: {}", error.what());
  }
  closed_ = true;
  deadline_->stop();
  socket_.shutdown(asio::socket_base::shutdown_both, ignored);
  socket_.close(ignored);
}

// Serves one request. Returns false if the connection ends.
asio::awaitable<bool> HttpSession::serve_request() {
  keep_memory_reserve();
  Incoming incoming(shared_);
  ReadOutcome outcome = co_await read_head(incoming);
  if (outcome == ReadOutcome::kRead) {
    if (std::optional<HttpResponse> refusal = refusal_of_gate(incoming)) {
      const bool close = closes_after(incoming) || !incoming.parser.can_skip_body();
      co_return co_await refuse(incoming, std::move(*refusal), close);
    }
    outcome = co_await read_body(incoming);
  }
  if (outcome == ReadOutcome::kClosed) co_return false;
  if (outcome == ReadOutcome::kRefused)
    co_return co_await refuse(incoming, std::move(incoming.refusal), /*close=*/true);
  const bool goes_on = co_await answer(incoming);
  log(incoming);
  co_return goes_on;
}

// Sends a refusal. If the connection goes on, the rest of the request is read and ignored.
asio::awaitable<bool> HttpSession::refuse(Incoming& incoming, HttpResponse response, bool close) {
  const bool goes_on = co_await send_response(incoming, std::move(response), {}, close);
  log(incoming);
  if (goes_on) co_return co_await read_body(incoming) == ReadOutcome::kRead;
  if (!incoming.parser.is_whole()) co_await linger();
  co_return false;
}

asio::awaitable<bool> HttpSession::wait_for_first_byte() {
  if (buffer_.size() > 0) co_return true;
  if (draining_ && has_begun_) co_return false;
  deadline_->set(limits_.idle_timeout_s);
  error_code error;
  const std::size_t n = co_await socket_.async_read_some(
      buffer_.prepare(kHeadReadBytes), asio::redirect_error(asio::use_awaitable, error));
  buffer_.commit(n);
  co_return !error;
}

asio::awaitable<HttpSession::ReadOutcome> HttpSession::read_head(Incoming& incoming) {
  const double timeout_s = limits_.header_timeout_s;
  const ReadOutcome outcome =
      co_await read(incoming, {.total_s = timeout_s, .silence_s = timeout_s});
  // If the request is refused, some of these may be missing.
  HttpRequest& request = incoming.parser.request();
  request.request_id = request_id_for(request.header("x-request-id"));
  incoming.request_id = request.request_id;
  incoming.is_for_anthropic = request.is_for_anthropic();
  incoming.method = request.method;
  incoming.path = request.path;
  if (outcome == ReadOutcome::kRead) incoming.keep_alive = incoming.parser.keeps_alive();
  co_return outcome;
}

asio::awaitable<HttpSession::ReadOutcome> HttpSession::read_body(Incoming& incoming) {
  if (incoming.parser.expects_continue()) {
    const bool sent = co_await write("HTTP/1.1 100 Continue\r\n\r\n", incoming);
    if (!sent) co_return ReadOutcome::kClosed;
  }
  const ReadOutcome outcome = co_await read(
      incoming, {.total_s = limits_.body_timeout_s, .silence_s = limits_.body_silence_s});
  // The memory for reading a large body is freed while the request is answered.
  if (buffer_.size() == 0 && buffer_.capacity() > kHeadReadBytes) buffer_.shrink_to_fit();
  co_return outcome;
}

// Reads to the end of the header, or from there to the end of the request.
asio::awaitable<HttpSession::ReadOutcome> HttpSession::read(Incoming& incoming, ReadTimes times) {
  using Progress = HttpRequestParser::Progress;
  const TimePoint end =
      std::chrono::steady_clock::now() + SocketDeadline::to_duration(times.total_s);
  while (true) {
    const Progress progress =
        co_await parse_request(incoming.parser, buffer_, shared_.large_bodies);
    if (progress == Progress::kRefused) {
      incoming.refusal = std::move(incoming.parser.refusal());
      co_return ReadOutcome::kRefused;
    }
    if (progress != Progress::kNeedsMore) co_return ReadOutcome::kRead;
    deadline_->set(std::min(
        end, std::chrono::steady_clock::now() + SocketDeadline::to_duration(times.silence_s)));
    error_code error;
    const std::size_t n =
        co_await socket_.async_read_some(buffer_.prepare(incoming.parser.read_size()),
                                         asio::redirect_error(asio::use_awaitable, error));
    buffer_.commit(n);
    deadline_->clear();
    if (deadline_->timed_out()) {
      incoming.refusal =
          error_response({408, "the request did not come in time", "", "request_timeout"});
      co_return ReadOutcome::kRefused;
    }
    if (error) co_return ReadOutcome::kClosed;
  }
}

std::optional<HttpResponse> HttpSession::refusal_of_gate(Incoming& incoming) const {
  if (!shared_.gate) return {};
  try {
    std::optional<HttpResponse> refusal = shared_.gate(incoming.parser.request());
    incoming.client_name = incoming.parser.request().client_name;
    incoming.trace = incoming.parser.request().trace;
    return refusal;
  } catch (const std::exception& error) {
    return failure_response(incoming.method + " " + incoming.path, error);
  }
}

HttpReply HttpSession::handle(Incoming& incoming) const {
  Wake wake = [weak = std::weak_ptr(wake_)] {
    const auto state = weak.lock();
    if (!state || state->posted.exchange(true)) return;
    asio::post(state->strand, [state] {
      state->posted = false;
      state->signal();
    });
  };
  try {
    incoming.parser.request().held = incoming.held;
    return shared_.handler(std::move(incoming.parser.request()), std::move(wake));
  } catch (const std::exception& error) {
    return {failure_response(incoming.method + " " + incoming.path, error), {}};
  }
}

asio::awaitable<bool> HttpSession::answer(Incoming& incoming) {
  HttpReply reply = handle(incoming);
  bool goes_on = co_await await_reply(reply);
  if (goes_on) {
    if (auto* response = std::get_if<HttpResponse>(&reply.content)) {
      goes_on = co_await send_response(incoming, std::move(*response), reply.headers,
                                       closes_after(incoming));
    } else {
      goes_on = co_await send_stream(
          incoming, *std::get<std::unique_ptr<EventStream>>(reply.content), reply.headers);
    }
  }
  co_await stop_watching_peer();
  co_return goes_on && !peer_gone_;
}

// Waits until `reply` is known. Returns false if the client has gone or the session is closed.
asio::awaitable<bool> HttpSession::await_reply(HttpReply& reply) {
  while (auto* pending = std::get_if<std::unique_ptr<PendingReply>>(&reply.content)) {
    start_watching_peer();
    if (peer_gone_ || closed_) co_return false;
    wake_->signalled = false;
    std::optional<HttpReply> next = (*pending)->poll();
    if (next) {
      reply.become(*std::move(next));
    } else {
      co_await wait_for_wake(0);
    }
  }
  co_return true;
}

void HttpSession::log(const Incoming& incoming) const {
  std::string_view how_it_ended;
  if (!incoming.is_answered) {
    how_it_ended = closed_                  ? "ended by the server"
                   : deadline_->timed_out() ? "the client did not read"
                                            : "the client went away";
  }
  shared_.access_log.write({.method = incoming.method,
                            .path = incoming.path,
                            .status = incoming.status,
                            .seconds = seconds_between(incoming.arrival, Clock::system().now()),
                            .num_bytes = num_written_,
                            .request_id = incoming.request_id,
                            .client_name = incoming.client_name,
                            .how_it_ended = how_it_ended,
                            .trace = incoming.trace});
}

asio::awaitable<bool> HttpSession::send_response(Incoming& incoming, HttpResponse response,
                                                 const HttpHeaders& headers, bool close) {
  const FailedRequest failed = {incoming.path, incoming.request_id, incoming.is_for_anthropic};
  write_error(response, shared_.write_error, failed);
  count_text(response, incoming.held, shared_.write_error, failed);
  incoming.status = response.status;
  std::string bytes = whole_head({.version = incoming.parser.version(),
                                  .status = response.status,
                                  .close = close,
                                  .request_id = incoming.request_id},
                                 response, headers);
  const std::string_view body = incoming.method != "HEAD" ? response.text() : std::string_view();
  const bool is_one_write = body.size() <= kMaxJoinedBytes;
  if (is_one_write) bytes += body;
  incoming.is_answered = co_await write(std::move(bytes), incoming) &&
                         (is_one_write || co_await write(std::move(response.shared_body)));
  co_return incoming.is_answered && !close;
}

asio::awaitable<bool> HttpSession::send_stream(Incoming& incoming, EventStream& stream,
                                               const HttpHeaders& headers) {
  const unsigned version = incoming.parser.version();
  const bool close = version < 11 || closes_after(incoming);
  incoming.status = 200;
  start_watching_peer();
  bool sent = co_await write(
      stream_head({.version = version, .close = close, .request_id = incoming.request_id},
                  stream.content_type(), headers),
      incoming);
  while (sent && !peer_gone_ && !closed_) {
    wake_->signalled = false;
    std::string events = stream.poll();
    bool finished = stream.finished();
    if (events.empty() && !finished) {
      co_await wait_for_wake(limits_.comment_interval_s);
      if (wake_->signalled || peer_gone_ || closed_) continue;
      events = stream.keep_alive();
      if (events.empty()) continue;
    }
    Result<SharedText> text = HeldText::make(incoming.held, in_chunks(version, events, finished));
    const bool has_room = text.ok();
    if (!has_room) {
      finished = true;
      events = stream.last_words(api_error(text.status()));
      text = HeldText::make(incoming.held, in_chunks(version, events, finished));
    }
    std::string().swap(events);
    sent = text.ok() && co_await write(std::move(text).value());
    incoming.is_answered = sent && finished && has_room;
    if (finished) co_return sent && !close;
  }
  co_return false;
}

// Writes bytes. Returns false also if the memory budget has no room for them.
asio::awaitable<bool> HttpSession::write(std::string bytes, const Incoming& incoming) {
  Result<SharedText> text = HeldText::make(incoming.held, std::move(bytes));
  co_return text.ok() && co_await write(std::move(text).value());
}

asio::awaitable<bool> HttpSession::write(SharedText text) {
  co_return co_await write_all(socket_, text->view(), *deadline_, limits_.write_timeout_s,
                               &num_written_);
}

// Waits until wake_ is signalled (by a reply, or because the peer has gone), or `timeout_s` have
// passed; 0: no limit.
asio::awaitable<void> HttpSession::wait_for_wake(double timeout_s) {
  if (wake_->signalled) co_return;
  if (timeout_s > 0) {
    wake_->timer.expires_after(SocketDeadline::to_duration(timeout_s));
  } else {
    wake_->timer.expires_at(TimePoint::max());
  }
  error_code ignored;
  co_await wake_->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

// Reads and ignores what the client still sends. Closing at once would reset the connection, and
// the client might lose the refusal.
asio::awaitable<void> HttpSession::linger() {
  error_code error;
  socket_.shutdown(asio::socket_base::shutdown_send, error);
  buffer_.clear();
  deadline_->set(limits_.linger_s);
  std::string sink(4 * kHeadReadBytes, '\0');
  while (!error && !deadline_->timed_out() && !closed_) {
    co_await socket_.async_read_some(asio::buffer(sink),
                                     asio::redirect_error(asio::use_awaitable, error));
  }
}

void HttpSession::start_watching_peer() {
  if (watching_ || peer_gone_ || buffer_.size() >= kMaxPipelinedBytes) return;
  watching_ = true;
  auto on_read = [self = shared_from_this()](error_code error, std::size_t n) {
    self->watching_ = false;
    self->buffer_.commit(n);
    if (!error) {
      self->start_watching_peer();
      return;
    }
    self->peer_gone_ = error != asio::error::operation_aborted;
    self->wake_->signal();
  };
  socket_.async_read_some(buffer_.prepare(kHeadReadBytes),
                          asio::bind_cancellation_slot(stop_watching_.slot(), std::move(on_read)));
}

asio::awaitable<void> HttpSession::stop_watching_peer() {
  // A byte that came in the meantime starts another read, so one cancellation is not enough.
  while (watching_) {
    wake_->signalled = false;
    stop_watching_.emit(asio::cancellation_type::terminal);
    co_await wait_for_wake(1);
  }
}

void HttpSession::drain() {
  draining_ = true;
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->idle_ && self->has_begun_) self->socket_.cancel(ignored);
  });
}

void HttpSession::close() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    self->closed_ = true;
    error_code ignored;
    self->socket_.close(ignored);
    self->wake_->signal();
  });
}

}  // namespace pagoda
