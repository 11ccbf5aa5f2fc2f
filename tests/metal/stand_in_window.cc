#include "tests/metal/stand_in_window.h"

#include <fmt/format.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/scheduler.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace pagoda::mlx::stand_in {
namespace {

// An evaluation waits if MLX has more tasks in flight (MAX_ACTIVE_TASKS in mlx/transforms.cpp), and
// the tasks wait for the window. So the window closes then.
constexpr int kMostTasks = 10;
constexpr auto kPollInterval = std::chrono::milliseconds(2);
constexpr auto kIdleTime = std::chrono::seconds(1);

std::atomic<std::uint64_t> idle_closes = 0;

struct OpenWindows {
  std::mutex mutex;
  std::vector<std::weak_ptr<Window>> windows;
};

OpenWindows& open_windows() {
  static auto* const instance = new OpenWindows;  // MLX's threads outlive main()
  return *instance;
}

void remember(const std::shared_ptr<Window>& window) {
  OpenWindows& open = open_windows();
  const std::lock_guard lock(open.mutex);
  std::erase_if(open.windows, [](const std::weak_ptr<Window>& other) {
    const std::shared_ptr<Window> alive = other.lock();
    return alive == nullptr || alive->is_closed();
  });
  open.windows.push_back(window);
}

// The order of recorded dispatches on the GPU. keeps() returns whether the GPU, too, runs `later`
// after `earlier`.
class Order {
 public:
  explicit Order(std::span<const Command> commands) {
    for (const Command& command : commands) {
      auto& waits = waits_[command.place.encoder];
      waits.insert(command.place.waits.begin(), command.place.waits.end());
    }
  }

  bool keeps(const Place& earlier, const Place& later) const {
    if (earlier.encoder == later.encoder) return earlier.epoch < later.epoch;
    return waits_.at(later.encoder).contains(earlier.encoder);
  }

 private:
  std::unordered_map<std::uint64_t, std::unordered_set<std::uint64_t>> waits_;  // per encoder
};

}  // namespace

std::vector<std::size_t> draw_order(std::span<const Command> commands, std::uint64_t seed) {
  const Order order(commands);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> left(commands.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<std::size_t> drawn;
  while (!left.empty()) {
    std::vector<std::size_t> ready;  // places in `left`
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool is_ready = std::none_of(left.begin(), left.begin() + i, [&](std::size_t earlier) {
        return order.keeps(commands[earlier].place, commands[left[i]].place);
      });
      if (is_ready) ready.push_back(i);
    }
    const std::size_t pick = ready[random() % ready.size()];
    drawn.push_back(left[pick]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return drawn;
}

std::shared_ptr<Window> Window::open(mx::Stream stream, bool is_shuffled,
                                     const emulator::Options& options) {
  mx::cpu::get_command_encoder(stream);  // throws if the stream is another thread's
  std::shared_ptr<Window> window(new Window(is_shuffled, options));
  mx::scheduler::enqueue(stream, [window] {
    window->wait_until_closed();
    window->run();
  });
  remember(window);
  return window;
}

bool Window::add(const Command& command) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  commands_.push_back(command);
  last_recorded_ = Clock::now();
  return true;
}

void Window::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  closed_.notify_all();
}

bool Window::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

void Window::wait_until_closed() {
  std::unique_lock lock(mutex_);
  while (!is_closed_) {
    if (mx::scheduler::n_active_tasks() > kMostTasks) {
      is_closed_ = true;
    } else if (Clock::now() - last_recorded_ > kIdleTime) {
      is_closed_ = true;
      idle_closes.fetch_add(1, std::memory_order_relaxed);
    } else {
      closed_.wait_for(lock, kPollInterval);
    }
  }
}

void Window::run() {
  const std::vector<Command> commands = std::exchange(commands_, {});
  std::vector<std::size_t> order(commands.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (is_shuffled_) order = draw_order(commands, options_.seed);
  for (const std::size_t i : order) {
    try {
      run_command(commands[i], options_);
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{} (dispatch {} of {} in a window of seed {})",
                                           error.what(), i, commands.size(), options_.seed));
    }
  }
}

void close_all_windows() {
  std::vector<std::weak_ptr<Window>> windows;
  {
    OpenWindows& open = open_windows();
    const std::lock_guard lock(open.mutex);
    windows.swap(open.windows);
  }
  for (const std::weak_ptr<Window>& window : windows) {
    if (const std::shared_ptr<Window> alive = window.lock()) alive->close();
  }
}

std::uint64_t num_idle_closes() {
  return idle_closes.load(std::memory_order_relaxed);
}

void reset_idle_closes() {
  idle_closes.store(0, std::memory_order_relaxed);
}

}  // namespace pagoda::mlx::stand_in
