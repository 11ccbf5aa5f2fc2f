#include "bench_serve/load_client.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>
#include <csignal>
#include <memory>
#include <random>

#include "bench_serve/completion_events.h"
#include "bench_serve/server_connection.h"

namespace pagoda {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using SteadyTime = std::chrono::steady_clock::time_point;

namespace {

constexpr std::chrono::seconds kQuestionTimeout{30};
// The longest wait for the next piece of an answer. A request may wait in the server's queue that
// long.
constexpr std::chrono::seconds kSilenceTimeout{1800};
constexpr std::size_t kMaxAnswerBytes = 64 << 20;
constexpr std::size_t kMaxErrorBytes = 64 << 10;

std::string request_text(const ServerAccess& server, const std::string& path,
                         const std::string& body) {
  std::string text =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\nUser-Agent: pagoda-bench\r\n",
                  body.empty() ? "GET" : "POST", server.url.prefix, path, server.url.authority());
  if (!server.api_key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", server.api_key);
  if (!body.empty()) {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return text + "\r\n" + body;
}

asio::awaitable<Result<HttpAnswer>> ask(asio::io_context& context, const ServerAccess& server,
                                        const std::string& text) {
  ServerConnection connection(context, server.tls.get());
  Status status = co_await connection.open(server.url, kQuestionTimeout);
  if (!status.ok()) co_return status;
  AnswerParser parser;
  status = co_await connection.exchange(text, parser, kQuestionTimeout);
  if (!status.ok()) co_return status;
  HttpAnswer answer = {.status = static_cast<int>(parser.get().result_int())};
  const OnBytes on_bytes = [&](std::string_view bytes) -> Status {
    if (answer.body.size() + bytes.size() > kMaxAnswerBytes)
      return data_loss("expected an answer of at most {} bytes, got more", kMaxAnswerBytes);
    answer.body += bytes;
    return ok_status();
  };
  status = co_await connection.read_body(parser, on_bytes, kQuestionTimeout);
  if (!status.ok()) co_return status;
  co_return answer;
}

}  // namespace

Result<ServerAccess> make_server_access(std::string_view flag, std::string_view url,
                                        const std::string& api_key, bool verifies) {
  ServerAccess server = {.url = {}, .api_key = api_key, .tls = nullptr};
  PAGODA_ASSIGN_OR_RETURN(server.url, parse_server_url(flag, url));
  if (server.url.is_https) server.tls = make_tls_context(verifies);
  return server;
}

Result<HttpAnswer> ask_server(const ServerAccess& server, const std::string& path,
                              const std::string& body) {
  asio::io_context context;
  Result<HttpAnswer> answer = unavailable("no answer");
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        const std::string text = request_text(server, path, body);
        answer = co_await ask(context, server, text);
      },
      asio::detached);
  context.run();
  if (answer.ok()) return answer;
  return answer.status().with_context(fmt::format("{}{}", server.url.text(), path));
}

namespace {

// A run in progress. All its code runs on the thread that runs `context`.
class Load {
 public:
  Load(const LoadOptions& options, const std::vector<LoadRequest>& requests)
      : options_(options),
        requests_(requests),
        signals_(context_, SIGINT, SIGTERM),
        arrival_(context_),
        free_place_(context_) {}

  LoadRun run() {
    signals_.async_wait([this](error_code error, int) {
      if (error) return;
      run_.interrupted = true;
      context_.stop();
    });
    start_ = std::chrono::steady_clock::now();
    asio::co_spawn(context_, send_all(), asio::detached);
    context_.run();
    run_.duration_s = now_s();
    return std::move(run_);
  }

 private:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  asio::awaitable<void> send_all() {
    const std::vector<double> arrivals =
        arrivals_s(options_.shape.request_rate, options_.seed, requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      co_await wait_until(arrivals[i]);
      while (options_.shape.max_concurrency > 0 && num_in_flight_ >= options_.shape.max_concurrency)
        co_await wait_for_place();
      ++num_in_flight_;
      asio::co_spawn(context_, serve(requests_[i]), asio::detached);
    }
    if (requests_.empty()) signals_.cancel();
  }

  asio::awaitable<void> wait_until(double arrival_s) {
    if (arrival_s <= now_s()) co_return;
    arrival_.expires_at(start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                     std::chrono::duration<double>(arrival_s)));
    error_code ignored;
    co_await arrival_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::awaitable<void> wait_for_place() {
    free_place_.expires_at(SteadyTime::max());
    error_code ignored;
    co_await free_place_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::awaitable<void> serve(const LoadRequest& request) {
    RequestRecord record = {.start_s = now_s(), .num_input_tokens = request.num_input_tokens};
    const std::string text = request_text(options_.server, "/v1/completions", request.body);
    Status status = co_await stream_completion(text, record);
    record.error = status.message();
    record.end_s = now_s();
    run_.records.push_back(std::move(record));
    --num_in_flight_;
    free_place_.cancel();
    const int num_done = static_cast<int>(run_.records.size());
    if (options_.on_progress) options_.on_progress(num_done);
    if (run_.records.size() == requests_.size()) signals_.cancel();
  }

  // Streams a completion on a kept connection. If the server has closed that connection, tries the
  // next one, or opens a new one.
  asio::awaitable<Status> stream_completion(const std::string& text, RequestRecord& record) {
    while (true) {
      std::unique_ptr<ServerConnection> connection;
      if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
      } else {
        connection = std::make_unique<ServerConnection>(context_, options_.server.tls.get());
        Status status = co_await connection->open(options_.server.url, kQuestionTimeout);
        if (!status.ok()) co_return status;
      }
      AnswerParser parser;
      Status status = co_await connection->exchange(text, parser, kSilenceTimeout);
      if (!status.ok() && connection->is_used) continue;
      if (status.ok()) status = co_await read_completion(*connection, parser, record);
      if (!status.ok()) co_return status;
      connection->is_used = true;
      if (parser.keep_alive()) idle_.push_back(std::move(connection));
      co_return ok_status();
    }
  }

  asio::awaitable<Status> read_completion(ServerConnection& connection, AnswerParser& parser,
                                          RequestRecord& record) {
    const auto& head = parser.get();
    const int code = static_cast<int>(head.result_int());
    const std::string_view type = head[http::field::content_type];
    if (code != 200 || !type.starts_with("text/event-stream")) {
      std::string body;
      const OnBytes keep = [&](std::string_view bytes) {
        body += bytes.substr(0, kMaxErrorBytes - std::min(body.size(), kMaxErrorBytes));
        return ok_status();
      };
      Status status = co_await connection.read_body(parser, keep, kSilenceTimeout);
      if (!status.ok()) co_return status;
      if (code != 200) co_return unavailable("HTTP {}: {}", code, error_message(body));
      co_return data_loss("expected an event stream, got {}", type);
    }
    CompletionEvents events(record);
    const OnBytes take = [&](std::string_view bytes) { return events.push(bytes, now_s()); };
    Status status = co_await connection.read_body(parser, take, kSilenceTimeout);
    if (!status.ok()) co_return status;
    co_return events.finish();
  }

  const LoadOptions& options_;
  const std::vector<LoadRequest>& requests_;
  LoadRun run_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer arrival_;
  asio::steady_timer free_place_;
  std::vector<std::unique_ptr<ServerConnection>> idle_;
  int num_in_flight_ = 0;
  SteadyTime start_;
};

}  // namespace

std::vector<double> arrivals_s(double rate, unsigned long seed, std::size_t count) {
  std::vector<double> times(count);
  if (!std::isfinite(rate)) return times;
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap_s(rate);
  for (std::size_t i = 1; i < count; ++i) times[i] = times[i - 1] + gap_s(random);
  return times;
}

LoadRun run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests) {
  Load load(options, requests);
  return load.run();
}

}  // namespace pagoda
