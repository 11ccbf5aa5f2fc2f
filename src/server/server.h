// Server: the OpenAI API and the page for one model, over HTTP.
//
// Text work (templates, tokenising, detokenising) runs on the server's threads, never on the
// engine's; what may take long has threads of its own (server/generation/text_workers.h). No prompt, no answer
// and no key goes to a log. Thread-safe; stop() may be called once.
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
  std::uint16_t port = 8000;     // 0: any free one
  std::string path;              // to listen on instead of an address; empty: none
  TlsFiles tls;                  // without a certificate: plain HTTP
  std::vector<ApiKey> api_keys;  // none: everybody may ask
  // Origins, besides the server's own, whose pages may ask; "*": all.
  std::vector<std::string> allowed_origins;
  // Names by which the server may be asked, besides addresses, localhost and `host`; "*": all.
  std::vector<std::string> allowed_hosts;
  // The path below which a proxy serves this, such as "/llm": what the page and /openapi.json tell
  // their clients. Requests may come with it or, where the proxy takes it away, without.
  std::string root_path;
  // The most bytes of what requests keep, and of answers until their clients have them; see
  // serving/request_memory.h.
  std::int64_t max_request_memory_bytes = kMaxRequestMemoryBytes;
  // Events of the model's prefix cache, for clients that ask for them; null: no client may.
  std::shared_ptr<const CacheEvents> cache_events;
  std::string traces_url;  // of TraceExporter::start(); empty: no request is traced
  int num_threads = 2;
  HttpLimits limits;
  LogFormat log_format = LogFormat::kText;  // of requests' lines, as use_log_format() has the rest
};

class Server {
 public:
  // Listens when it returns, and answers 503 "loading" to everything until serve(), /health too: so
  // a port that is taken is told before a model is loaded. Errors are HttpListener::start()'s
  // and TraceExporter::start()'s.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options);
  ~Server();  // stop(0)

  // Answers for `model`, which outlives the server, from here on. Once. `names`: its own in the
  // API, at least one; answers to requests without a name carry the first.
  void serve(ServedModel& model, const std::vector<std::string>& names);

  std::uint16_t port() const;  // 0: it listens on a path
  int num_connections() const;

  // Lets running answers finish until the deadline, and answers what comes meanwhile as
  // Router::drain() has it. Then the engine ends the rest, whose clients are told. Accepts nothing
  // more and joins the threads.
  void stop(double deadline_s);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
