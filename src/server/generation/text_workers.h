// TextWorkers: threads for work on texts: reading a body, rendering, tokenising, detokenising a
// whole text, compiling a grammar. The threads that deliver streams do none of it, so that no
// client's text delays the answers of others.
//
// There are four lanes, each with threads of its own. So a text waits neither for much longer texts
// nor for grammars, which may both take seconds. The threads of medium and long texts have a lower
// priority than the engine's. Those of short texts and grammars do not: most of them take some
// milliseconds, and their clients wait for a first token.
//
// A lane serves texts in their order of arrival. But a text counts as arriving one second later for
// each 64 KiB. So texts of 4 MB let those of 1 MB pass, but not without end.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "server/base/http_message.h"

namespace pagoda {

enum class TextLane : std::uint8_t { kShort, kMedium, kLong, kGrammar };
inline constexpr int kNumTextLanes = 4;

// Returns the lane of a text. kShort: up to 32 KiB, about 10 ms of work. kMedium: up to 512 KiB, as
// much as contexts of 128 Ki tokens hold. kLong: more.
TextLane lane_of_text(std::size_t num_bytes);

struct TextWorkersOptions {
  int num_short_threads = 2;  // the other lanes have one each
  int max_waiting = 4096;     // in each lane; further work is refused
};

// Thread-safe. REQUIRES: it outlives the replies that it returns.
class TextWorkers {
 public:
  // Throws NoThread.
  explicit TextWorkers(const TextWorkersOptions& options = {});
  // Drops the work that waits, and returns when the work that runs is done.
  ~TextWorkers();
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  struct Place {
    TextLane lane = TextLane::kShort;
    std::size_t num_bytes = 0;  // the text's length
  };
  // Runs `work()`, which returns an HttpReply, on a thread of the lane. Returns a pending reply
  // that becomes this result; 429 if the lane is full. `work` may itself return a reply of run().
  // Destroying the pending reply takes the work out of the lane. If the work is running already,
  // its result is destroyed on the thread that runs it. `wake` is called when the result is there.
  template <typename Work>
  HttpReply run(Place place, Wake wake, Work work) {
    return enqueue(place, std::make_shared<TaskOf<Work>>(std::move(wake), std::move(work)));
  }

  int num_waiting() const;

 private:
  class Task;
  template <typename Work>
  class TaskOf;
  class TaskReply;
  // The time of a task's turn, and a number that orders tasks of the same time.
  using Turn = std::pair<Clock::TimePoint, std::uint64_t>;
  using Waiting = std::map<Turn, std::shared_ptr<Task>>;

  void start_threads();
  void end_threads();
  HttpReply enqueue(Place place, std::shared_ptr<Task> task);
  bool remove(TextLane lane, const Turn& turn);
  void work_on(TextLane lane);
  std::shared_ptr<Task> next(TextLane lane);

  const TextWorkersOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_[kNumTextLanes];
  Waiting waiting_[kNumTextLanes];
  std::uint64_t num_enqueued_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// A piece of work and its result, shared by the thread that runs it and the connection that waits.
class TextWorkers::Task {
 public:
  explicit Task(Wake wake) : wake_(std::move(wake)) {}
  virtual ~Task() = default;

  void run();
  // Returns the result once, when it is there.
  std::optional<HttpReply> take();
  // Gives up the result: nothing waits for it any more, and `wake` is not called again.
  void drop();

 protected:
  virtual HttpReply work() = 0;
  // Frees what the work holds, mainly a request's body.
  virtual void clear() = 0;

 private:
  std::mutex mutex_;
  Wake wake_;
  bool is_dropped_ = false;
  std::optional<HttpReply> result_;
};

template <typename Work>
class TextWorkers::TaskOf final : public Task {
 public:
  TaskOf(Wake wake, Work work) : Task(std::move(wake)), work_(std::move(work)) {}

 protected:
  HttpReply work() override { return (*work_)(); }
  void clear() override { work_.reset(); }

 private:
  std::optional<Work> work_;
};

}  // namespace pagoda
