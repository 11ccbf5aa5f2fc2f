// A window: dispatches that are recorded until it is closed, and then run as a whole.
#pragma once

#include <mlx/stream.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tests/metal/stand_in_command.h"

namespace pagoda::mlx::stand_in {

// Draws one of the orders that the rules allow, by a seed. Returns the commands' indices.
std::vector<std::size_t> draw_order(std::span<const Command> commands, std::uint64_t seed);

// One thread records commands to it; the thread of a stream runs them.
class Window {
 public:
  // Makes a window, and gives the stream a task that runs it. Throws MLX's exceptions, such as the
  // error of an earlier task.
  static std::shared_ptr<Window> open(mx::Stream stream, bool is_shuffled,
                                      const emulator::Options& options);

  // Adds a command. Returns false if the window is closed.
  bool add(const Command& command);
  void close();
  bool is_closed() const;

 private:
  using Clock = std::chrono::steady_clock;

  Window(bool is_shuffled, const emulator::Options& options)
      : is_shuffled_(is_shuffled), options_(options) {}

  void wait_until_closed();
  void run();

  const bool is_shuffled_;
  const emulator::Options options_;  // the order uses their seed, too
  mutable std::mutex mutex_;
  std::condition_variable closed_;
  bool is_closed_ = false;
  Clock::time_point last_recorded_ = Clock::now();
  std::vector<Command> commands_;
};

// Closes the open windows of all threads.
void close_all_windows();
std::uint64_t num_idle_closes();
void reset_idle_closes();

}  // namespace pagoda::mlx::stand_in
