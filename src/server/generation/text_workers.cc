#include "server/generation/text_workers.h"

#include <chrono>
#include <exception>

#include "core/machine.h"
#include "core/start_thread.h"
#include "server/base/api_error.h"
#include "server/base/error_response.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxShortBytes = 32 << 10;
constexpr std::size_t kMaxMediumBytes = 512 << 10;
// A text's turn comes a second later for each 64 KiB.
constexpr std::size_t kBytesPerSecond = 64 << 10;

Clock::TimePoint turn_of(std::size_t num_bytes) {
  const auto delay = std::chrono::milliseconds(1000 * num_bytes / kBytesPerSecond);
  return Clock::system().now() + delay;
}

}  // namespace

TextLane lane_of_text(std::size_t num_bytes) {
  if (num_bytes <= kMaxShortBytes) return TextLane::kShort;
  return num_bytes <= kMaxMediumBytes ? TextLane::kMedium : TextLane::kLong;
}

// --- one piece of work

void TextWorkers::Task::run() {
  {
    std::lock_guard lock(mutex_);
    if (is_dropped_) return;  // dropped after it was taken from the queue
  }
  HttpReply reply;
  try {
    reply = work();
    clear();
  } catch (const std::exception& error) {
    clear();  // first: the answer may need the memory that this frees
    reply = {failure_response("a text", error), {}};
  }
  std::lock_guard lock(mutex_);
  if (is_dropped_) return;
  result_ = std::move(reply);
  wake_();  // under the lock, so that no call is running when drop() returns
}

std::optional<HttpReply> TextWorkers::Task::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

void TextWorkers::Task::drop() {
  std::optional<HttpReply> unwanted;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  is_dropped_ = true;
  unwanted.swap(result_);
}

// --- what the connection holds

class TextWorkers::TaskReply final : public PendingReply {
 public:
  TaskReply(TextWorkers& workers, std::shared_ptr<Task> task, TextLane lane, const Turn& turn)
      : workers_(workers), task_(std::move(task)), lane_(lane), turn_(turn) {}
  ~TaskReply() override {
    if (!workers_.remove(lane_, turn_)) task_->drop();
  }

  std::optional<HttpReply> poll() override { return task_->take(); }

 private:
  TextWorkers& workers_;
  std::shared_ptr<Task> task_;
  TextLane lane_;
  Turn turn_;
};

// --- the lanes

TextWorkers::TextWorkers(const TextWorkersOptions& options) : options_(options) {
  try {
    start_threads();
  } catch (...) {
    end_threads();
    throw;
  }
}

TextWorkers::~TextWorkers() {
  end_threads();
}

void TextWorkers::start_threads() {
  for (int i = 0; i < options_.num_short_threads; ++i) {
    threads_.push_back(start_thread([this] {
      // This thread is as urgent as those that deliver streams: a chat's first token waits for it.
      ask_for_short_slices();
      work_on(TextLane::kShort);
    }));
  }
  for (const TextLane lane : {TextLane::kMedium, TextLane::kLong}) {
    threads_.push_back(start_thread([this, lane] {
      give_way();
      work_on(lane);
    }));
  }
  threads_.push_back(start_thread([this] { work_on(TextLane::kGrammar); }));
}

void TextWorkers::end_threads() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (std::condition_variable& changed : changed_) changed.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

int TextWorkers::num_waiting() const {
  std::lock_guard lock(mutex_);
  std::size_t num_waiting = 0;
  for (const Waiting& lane : waiting_) num_waiting += lane.size();
  return static_cast<int>(num_waiting);
}

HttpReply TextWorkers::enqueue(Place place, std::shared_ptr<Task> task) {
  const auto lane = static_cast<int>(place.lane);
  std::lock_guard lock(mutex_);
  if (static_cast<int>(waiting_[lane].size()) >= options_.max_waiting) {
    return {error_response(api_error(resource_exhausted(
                "[server] {} texts wait to be read already: try again", options_.max_waiting))),
            {}};
  }
  const Turn turn(turn_of(place.num_bytes), num_enqueued_++);
  waiting_[lane].emplace(turn, task);
  changed_[lane].notify_one();
  return {std::make_unique<TaskReply>(*this, std::move(task), place.lane, turn), {}};
}

// Removes a waiting task; returns false if the task is not waiting any more.
bool TextWorkers::remove(TextLane lane, const Turn& turn) {
  std::lock_guard lock(mutex_);
  return waiting_[static_cast<int>(lane)].erase(turn) > 0;
}

void TextWorkers::work_on(TextLane lane) {
  while (const std::shared_ptr<Task> task = next(lane)) task->run();
}

// Waits for the next task; null: the workers are stopping.
std::shared_ptr<TextWorkers::Task> TextWorkers::next(TextLane lane) {
  Waiting& waiting = waiting_[static_cast<int>(lane)];
  std::unique_lock lock(mutex_);
  changed_[static_cast<int>(lane)].wait(lock, [&] { return stopping_ || !waiting.empty(); });
  if (stopping_) return nullptr;
  std::shared_ptr<Task> task = std::move(waiting.begin()->second);
  waiting.erase(waiting.begin());
  return task;
}

}  // namespace pagoda
