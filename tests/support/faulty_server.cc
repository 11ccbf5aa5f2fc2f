// pagoda_faulty_server: the real server over a checkpoint whose engine's steps fail on demand, for
// tests that speak HTTP from outside. Prints "port N" once it listens and runs until its standard
// input ends. Each line of input is a fault for the next step: "fail TEXT", "throw TEXT" or "die
// TEXT".
//
//   pagoda_faulty_server MODEL
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>

#include "server/server.h"
#include "tests/support/faulty_engine.h"

namespace {

// Passes faults from standard input to the engine's thread.
class Orders {
 public:
  void give(std::string line) {
    const std::lock_guard lock(mutex_);
    next_ = std::move(line);
  }

  pagoda::Status obey() {
    std::string line;
    {
      const std::lock_guard lock(mutex_);
      line.swap(next_);
    }
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string order = line.substr(0, space);
    const std::string text = line.substr(std::min(space + 1, line.size()));
    if (order == "fail") return pagoda::internal_error("{}", text);
    if (order == "throw") throw std::runtime_error(text);
    if (order == "die") return pagoda::unavailable("{}", text);
    return pagoda::ok_status();
  }

 private:
  std::mutex mutex_;
  std::string next_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  spdlog::set_default_logger(spdlog::stderr_logger_mt("faulty"));  // stdout is for answers
  Orders orders;
  auto model = pagoda::load_served_model(
      {.path = argv[1], .engine = {.backend = pagoda::Backend::kCpu, .num_threads = 1}});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  (*model)->engine = pagoda::open_faulty_engine(
      argv[1], {.num_threads = 1},
      {.of_forward = [&](const pagoda::Plan&) { return orders.obey(); }});
  auto server = pagoda::Server::listen({.port = 0});
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().message().c_str());
    return 1;
  }
  (*server)->serve(**model, {(*model)->name});
  std::printf("port %d\n", (*server)->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) orders.give(line);
  (*server)->stop(1);
  return 0;
}
