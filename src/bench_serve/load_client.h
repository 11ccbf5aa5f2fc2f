// The load generator's HTTP client: single requests, and a run of streamed completions.
//
// It uses one thread, with a coroutine for each request. Connections are kept open and reused.
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
  std::shared_ptr<boost::asio::ssl::context> tls;  // from make_tls_context() if the URL is https
};

// Parses a URL as parse_server_url() does. `verifies` is passed to make_tls_context().
Result<ServerAccess> make_server_access(std::string_view flag, std::string_view url,
                                        const std::string& api_key, bool verifies);

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// Sends a GET, or a POST of JSON if `body` is not empty, and returns the answer. `path` is appended
// to the URL's prefix. kUnavailable names the URL: no server listens, it does not speak HTTP, or it
// does not answer within 30 s.
Result<HttpAnswer> ask_server(const ServerAccess& server, const std::string& path,
                              const std::string& body = {});

struct LoadRequest {
  std::string body;          // body of POST /v1/completions, with streaming
  int num_input_tokens = 0;  // used if the server does not send the number
};

struct LoadOptions {
  ServerAccess server;
  LoadShape shape;                                // see arrivals_s
  unsigned long seed = 0;                         // for the arrival times
  std::function<void(int num_done)> on_progress;  // called on the calling thread
};

struct LoadRun {
  std::vector<RequestRecord> records;  // completed and failed requests, ordered by their ends
  double duration_s = 0;
  bool interrupted = false;  // by SIGINT or SIGTERM; unfinished requests have no record
};

// Returns the time at which each of `count` requests is sent, in seconds from the start. All are 0
// if `rate` is infinite. Otherwise the times are a Poisson process, which starts at 0.
std::vector<double> arrivals_s(double rate, unsigned long seed, std::size_t count);

// Sends the requests and returns when the last has ended. Failed requests have records too.
LoadRun run_load(const LoadOptions& options, const std::vector<LoadRequest>& requests);

}  // namespace pagoda
