// Server: the OpenAI API and the page for one model, over HTTP.
//
// Text work (templates, tokenising, detokenising) runs on the server's threads, never on the
// engine's. Work that may take long has threads of its own (server/generation/text_workers.h). No
// prompt, no answer and no key goes to a log. Thread-safe; stop() may be called once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "kv/cache_events.h"
#include "server/base/log_format.h"
#include "server/http/access.h"
#include "server/http/http_limits.h"
#include "server/http/tls_certificate.h"
#include "serving/request_memory.h"
#include "serving/served_model.h"

namespace pagoda {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;     // 0: any free port
  std::string path;              // of a socket to listen on instead of host and port; empty: none
  TlsFiles tls;                  // without a certificate: plain HTTP
  std::vector<ApiKey> api_keys;  // empty: no key is needed
  // Origins of pages that may send requests, besides the server's own; "*": all.
  std::vector<std::string> allowed_origins;
  // Host names that requests may use, besides addresses, localhost and `host`; "*": all.
  std::vector<std::string> allowed_hosts;
  // The path below which a proxy serves this, such as "/llm". The page and /openapi.json tell it to
  // their clients. Requests may have it or not, as the proxy passes them on.
  std::string root_path;
  // The most bytes that requests keep, including answers until their clients have them; see
  // serving/request_memory.h.
  std::int64_t max_request_memory_bytes = kMaxRequestMemoryBytes;
  // Events of the model's prefix cache, for clients that ask for them; null: no client may.
  std::shared_ptr<const CacheEvents> cache_events;
  std::string traces_url;  // for TraceExporter::start(); empty: no request is traced
  int num_threads = 2;
  HttpLimits limits;
  // Format of the lines about requests. use_log_format() sets that of all others.
  LogFormat log_format = LogFormat::kText;
};

class Server {
 public:
  // Listens when it returns. Until serve(), everything except /livez is answered 503 "loading". So
  // a port that is taken is reported before a model is loaded. Errors are HttpListener::start()'s
  // and TraceExporter::start()'s.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options);
  ~Server();  // calls stop(0)

  // Starts to answer for `model`, which must outlive the server. May be called once. `names`: the
  // model's names in the API, at least one. Answers to requests without a name have the first.
  void serve(ServedModel& model, const std::vector<std::string>& names);

  std::uint16_t port() const;  // 0: it listens on a path
  int num_connections() const;

  // Lets running answers finish until the deadline, while the router refuses new ones
  // (Router::drain()). Then the engine ends the remaining answers, and their clients get an error.
  // Stops accepting and joins the threads.
  void stop(double deadline_s);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
