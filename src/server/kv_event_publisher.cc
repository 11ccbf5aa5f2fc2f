#include "server/kv_event_publisher.h"

#include <fmt/format.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/machine.h"
#include "core/start_thread.h"
#include "server/kv_event_batch.h"

namespace pagoda {

// Parts of the publisher.
namespace kv_events {

// Bounds of what is kept for replays. vLLM keeps as many messages, of any size.
constexpr std::size_t kMaxKept = 10'000;
constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;

struct CloseSocket {
  void operator()(void* socket) const { zmq_close(socket); }
};
using Socket = std::unique_ptr<void, CloseSocket>;

struct EndContext {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
using Context = std::unique_ptr<void, EndContext>;

// The latest messages, for replays. Thread-safe.
class KeptMessages {
 public:
  using Batch = std::shared_ptr<const std::string>;

  void add(std::uint64_t number, Batch batch) {
    const std::lock_guard lock(mutex_);
    num_bytes_ += batch->size();
    messages_.emplace_back(number, std::move(batch));
    while (messages_.size() > kMaxKept || num_bytes_ > kMaxKeptBytes) {
      num_bytes_ -= messages_.front().second->size();
      messages_.pop_front();
    }
  }
  std::vector<std::pair<std::uint64_t, Batch>> since(std::uint64_t first) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::uint64_t, Batch>> found;
    for (const auto& message : messages_) {
      if (message.first >= first) found.push_back(message);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::uint64_t, Batch>> messages_;
  std::size_t num_bytes_ = 0;
};

}  // namespace kv_events

namespace {

using kv_events::Socket;

constexpr std::size_t kMaxBatch = 256;  // events
// Messages that wait for a subscriber, or for one that is sent a replay. Further ones are lost.
constexpr int kMaxWaiting = 1000;
constexpr int kMaxWaitingReplies = kv_events::kMaxKept + 1;
constexpr std::int64_t kMaxIncoming = 1024;  // bytes of a subscription or of a request
constexpr int kFarewellMs = 200;             // for what is on its way when the server ends
// The events of a step come within this time, and become one message.
constexpr std::chrono::milliseconds kGathers(1);

using Number = std::array<char, 8>;

Number to_bytes(std::uint64_t number) {
  Number bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(number >> (8 * (bytes.size() - 1 - i)));
  return bytes;
}

std::uint64_t from_bytes(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Sends the frames as one message. False: it was lost.
bool send(void* socket, std::initializer_list<std::string_view> frames) {
  std::size_t left = frames.size();
  for (const std::string_view frame : frames) {
    const int flags = ZMQ_DONTWAIT | (--left > 0 ? ZMQ_SNDMORE : 0);
    if (zmq_send(socket, frame.data(), frame.size(), flags) < 0) return false;
  }
  return true;
}

// Waits for a message. Absent: the context has ended.
std::optional<std::vector<std::string>> receive(void* socket) {
  std::vector<std::string> frames;
  while (true) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket, 0) < 0) {
      if (zmq_errno() == EINTR) continue;
      return {};
    }
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
    const bool has_more = zmq_msg_more(&message) != 0;
    zmq_msg_close(&message);
    if (!has_more) return frames;
  }
}

// Returns whether an endpoint is bound, by vLLM's rule: its users have written theirs by it.
bool is_bound(std::string_view endpoint) {
  return endpoint.find('*') != std::string_view::npos ||
         endpoint.find("::") != std::string_view::npos || endpoint.starts_with("ipc://");
}

Result<Socket> open_socket(void* context, int type, const std::string& endpoint, bool binds,
                           int max_waiting) {
  Socket socket(zmq_socket(context, type));
  if (!socket) {
    return unavailable("[kv events] expected the system to open a socket, got: {}",
                       zmq_strerror(zmq_errno()));
  }
  const auto set = [&](int option, const auto& value) {
    return zmq_setsockopt(socket.get(), option, &value, sizeof(value)) == 0;
  };
  const int is_v6 = endpoint.find('[') != std::string::npos ? 1 : 0;
  if (!set(ZMQ_SNDHWM, max_waiting) || !set(ZMQ_MAXMSGSIZE, kMaxIncoming) ||
      !set(ZMQ_LINGER, kFarewellMs) || !set(ZMQ_IPV6, is_v6)) {
    return internal_error("[kv events] a socket took no option: {}", zmq_strerror(zmq_errno()));
  }
  const int status = binds ? zmq_bind(socket.get(), endpoint.c_str())
                           : zmq_connect(socket.get(), endpoint.c_str());
  if (status < 0) {
    const int error = zmq_errno();
    const bool is_malformed =
        error == EINVAL || error == EPROTONOSUPPORT || error == ENOCOMPATPROTO;
    const std::string why =
        fmt::format("[kv events] {}: expected an endpoint of ZeroMQ that can be {}, got: {}",
                    endpoint, binds ? "bound" : "connected to", zmq_strerror(error));
    return is_malformed ? invalid_argument("{}", why) : unavailable("{}", why);
  }
  return socket;
}

}  // namespace

struct KvEventPublisher::Impl {
  ~Impl() {
    events->end_waits();
    if (publishing.joinable()) publishing.join();
    zmq_ctx_shutdown(context.get());  // ends the wait for requests
    if (replaying.joinable()) replaying.join();
  }

  void publish(std::span<const RootedCacheEvent> batch) {
    const double unix_s = static_cast<double>(unix_time_ns()) / 1e9;
    const auto text =
        std::make_shared<const std::string>(kv_event_batch(batch, events->plain_root(), unix_s));
    const Number number = to_bytes(next_number);
    send(publisher.get(), {topic, {number.data(), number.size()}, *text});
    if (replies) kept.add(next_number, text);
    ++next_number;
  }

  void publish_all() {
    give_way();
    while (events->wait(next_event)) {
      std::this_thread::sleep_for(kGathers);
      CacheEvents::Backlog backlog = events->take(next_event, kMaxBatch);
      next_event = backlog.next;
      // Events that were missed are told as a beginning from nothing.
      if (backlog.is_whole)
        backlog.events.insert(backlog.events.begin(),
                              {.event = {.kind = CacheEventKind::kCleared}});
      std::span<const RootedCacheEvent> left = backlog.events;
      while (!left.empty()) {
        publish(left.first(std::min(left.size(), kMaxBatch)));
        left = left.subspan(std::min(left.size(), kMaxBatch));
      }
    }
  }

  // Answers requests: the client's name, an empty frame and a number.
  void answer_requests() {
    give_way();
    while (const auto request = receive(replies.get())) {
      if (request->size() != 3 || !(*request)[1].empty() || (*request)[2].size() != 8) {
        log_warning("[kv events] a replay's request: expected a number of 8 bytes, got others");
        continue;
      }
      const std::string& client = request->front();
      bool is_sent = true;
      for (const auto& [number, batch] : kept.since(from_bytes((*request)[2]))) {
        const Number bytes = to_bytes(number);
        is_sent =
            is_sent && send(replies.get(), {client, "", {bytes.data(), bytes.size()}, *batch});
      }
      const Number end = to_bytes(~std::uint64_t{0});
      if (is_sent) send(replies.get(), {client, "", {end.data(), end.size()}, ""});
    }
  }

  std::string topic;
  std::shared_ptr<CacheEvents> events;
  kv_events::KeptMessages kept;
  std::uint64_t next_event = 0, next_number = 0;  // of the publishing thread
  kv_events::Context context;
  Socket publisher, replies;  // null: no replays. A socket belongs to one thread.
  std::thread publishing, replaying;
};

KvEventPublisher::KvEventPublisher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvEventPublisher::~KvEventPublisher() = default;

Result<std::unique_ptr<KvEventPublisher>> KvEventPublisher::start(
    const KvEventOptions& options, std::shared_ptr<CacheEvents> events) {
  auto impl = std::make_unique<Impl>();
  impl->topic = options.topic;
  impl->events = std::move(events);
  impl->next_event = impl->events->next();
  impl->context.reset(zmq_ctx_new());
  if (!impl->context) return resource_exhausted("[kv events] there is no memory for ZeroMQ");
  PAGODA_ASSIGN_OR_RETURN(impl->publisher,
                          open_socket(impl->context.get(), ZMQ_PUB, options.endpoint,
                                      is_bound(options.endpoint), kMaxWaiting));
  if (!options.replay_endpoint.empty()) {
    PAGODA_ASSIGN_OR_RETURN(impl->replies,
                            open_socket(impl->context.get(), ZMQ_ROUTER, options.replay_endpoint,
                                        /*binds=*/true, kMaxWaitingReplies));
    impl->replaying = start_thread([impl = impl.get()] { impl->answer_requests(); });
  }
  impl->publishing = start_thread([impl = impl.get()] { impl->publish_all(); });
  return std::unique_ptr<KvEventPublisher>(new KvEventPublisher(std::move(impl)));
}

}  // namespace pagoda
