// KvEventPublisher: tells routers by ZeroMQ which blocks the prefix cache holds, as vLLM does.
//
// Each message has three frames: the topic, the message's number in 8 bytes (counted from 0, the
// high byte first), and a batch (server/kv_event_batch.h). A subscriber that has missed messages
// sends the first number that it wants, in 8 bytes, to the replay endpoint. It is sent the kept
// messages from there on, each as number and batch, and at the end the number -1 and nothing.
//
// A thread publishes, and nothing waits for it: a subscriber that reads too slowly misses messages.
// Blocks under a salt are never told. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "kv/cache_events.h"

namespace pagoda {

struct KvEventOptions {
  // As vLLM reads it: one with "*" or "::", or ipc://, is bound; to another the publisher connects.
  std::string endpoint;         // "tcp://*:5557"
  std::string replay_endpoint;  // is bound; empty: no replays
  std::string topic;
};

class KvEventPublisher {
 public:
  // Starts to publish the events from now on. REQUIRES: `events` keeps tokens. kInvalidArgument: an
  // endpoint is malformed. kUnavailable: it cannot be bound. Throws NoThread.
  static Result<std::unique_ptr<KvEventPublisher>> start(const KvEventOptions& options,
                                                         std::shared_ptr<CacheEvents> events);
  ~KvEventPublisher();
  KvEventPublisher(const KvEventPublisher&) = delete;
  KvEventPublisher& operator=(const KvEventPublisher&) = delete;

 private:
  struct Impl;
  explicit KvEventPublisher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
