// pagoda_fake_server: the server over a fake model, for tests that speak HTTP from outside. Prints
// "port N" once it listens and runs until its standard input ends.
//
//   pagoda_fake_server [--api-key K] [--token-s S] [--max-model-len N] [--max-queue N] [--port N]
//   [--max-request-memory-bytes N] [--quick-limits] [--allowed-origins O] [--allowed-hosts H]
//   [--root-path P] [--uds PATH] [--ssl-certfile FILE --ssl-keyfile FILE]
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "server/memory_trimmer.h"
#include "server/server.h"
#include "tests/support/fake_model.h"

int main(int argc, char** argv) {
  pagoda::give_back_large_blocks();                              // as `pagoda serve` does
  spdlog::set_default_logger(spdlog::stderr_logger_mt("fake"));  // stdout is for answers
  pagoda::FakeModelOptions model_options;
  pagoda::ServerOptions options;
  options.port = 0;
  bool quick_limits = false;
  std::vector<std::string> api_keys;
  CLI::App app("The server over a fake model");
  app.add_option("--api-key", api_keys);
  app.add_option("--allowed-origins", options.allowed_origins);
  app.add_option("--allowed-hosts", options.allowed_hosts);
  app.add_option("--root-path", options.root_path);
  app.add_option("--port", options.port);
  app.add_option("--uds", options.path);
  app.add_option("--ssl-certfile", options.tls.certificate);
  app.add_option("--ssl-keyfile", options.tls.key);
  app.add_option("--token-s", model_options.token_s);
  app.add_option("--max-model-len", model_options.max_model_len);
  app.add_option("--max-queue", model_options.max_queue);
  app.add_option("--max-request-memory-bytes", options.max_request_memory_bytes);
  app.add_flag("--thinks", model_options.thinks, "answers may hold thoughts, in <think>");
  app.add_flag("--quick-limits", quick_limits, "time-outs of one second, 8 connections");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& key : api_keys) options.api_keys.push_back({pagoda::sha256(key), ""});
  if (quick_limits) {
    options.limits.max_connections = 8;
    options.limits.header_timeout_s = 1;
    options.limits.body_timeout_s = 1;
    options.limits.idle_timeout_s = 1.5;
    options.limits.write_timeout_s = 1;
    options.limits.comment_interval_s = 0.2;
    options.limits.linger_s = 2;
  }
  const auto model = pagoda::make_fake_model(model_options);
  auto server = pagoda::Server::listen(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().message().c_str());
    return 1;
  }
  (*server)->serve(*model, {model->name});
  std::printf("port %d\n", (*server)->port());
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
    // A line "cancelled" asks for num_cancelled_samples().
    if (line == "cancelled")
      std::printf("%d\n", pagoda::fake_engine(*model).num_cancelled_samples());
    std::fflush(stdout);
  }
  (*server)->stop(1);
  return 0;
}
