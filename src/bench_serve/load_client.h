// The load generator's HTTP: single questions to a server, and a run of streamed completions.
//
// One thread does it all, with a coroutine a request; connections are kept open and reused.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench_serve/request_record.h"
#include "bench_serve/serve_figures.h"
#include "bench_serve/server_url.h"
#include "core/status.h"

namespace boost::asio::ssl {
class context;  // NOLINT(readability-identifier-naming): Boost's
}

namespace pagoda {

struct ServerAccess {
  ServerUrl url;
  std::string api_key;                             // "": none
  std::shared_ptr<boost::asio::ssl::context> tls;  // make_tls_context's where the URL is https
};

// Makes it of a URL as parse_server_url() takes it. `verifies`: as make_tls_context() has it.
Result<ServerAccess> make_server_access(std::string_view flag, std::string_view url,
                                        const std::string& api_key, bool verifies);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Sends a GET where `body` is empty, else a POST of JSON, and returns the answer. `path` comes
// after the URL's prefix. kUnavailable names the URL: no server listens there, it does not speak
// HTTP, or it does not answer within 30 s.
Result<HttpAnswer> ask_server(const ServerAccess& server, const std::string& path,
                              const std::string& body = {});

struct LoadRequest {
  std::string body;          // of POST /v1/completions, streamed
  int num_input_tokens = 0;  // where the server does not tell
};

struct LoadOptions {
  ServerAccess server;
  LoadShape shape;                                // see arrivals_s
  unsigned long seed = 0;                         // of the arrivals
  std::function<void(int num_done)> on_progress;  // on the calling thread
};

struct LoadRun {
  std::vector<RequestRecord> records;  // those done, in the order of their ends
  double duration_s = 0;
  bool interrupted = false;  // by SIGINT or SIGTERM: what was in flight then has no record
};

// Returns when each of `count` requests is sent, in seconds from the start: at once where `rate` is
// infinite, else as a Poisson process has it, the first at 0.
std::vector<double> arrivals_s(double rate, unsigned long seed, std::size_t count);

// Sends the requests and returns when the last has ended. A request that fails is a record.
LoadRun run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests);

}  // namespace pagoda
