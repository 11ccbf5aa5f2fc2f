// HttpListener: accepts HTTP/1.1 connections, plain or by TLS, and runs their requests through one
// handler, on a few threads.
//
// Keep-alive, pipelining, chunked bodies and "Expect: 100-continue" are understood. Bytes that are
// not HTTP are answered 400, and the connection is closed. A header or body over its limit is
// answered 431 or 413, without being read; a client that dawdles, 408. A request that the gate
// refuses is answered before its body is read, and closed unless little of it is left. All members
// are thread-safe but stop(), which may be called once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "server/base/error_response.h"
#include "server/base/http_message.h"
#include "server/http/access_log.h"
#include "server/http/http_limits.h"
#include "server/http/tls_certificate.h"

namespace pagoda {

struct ListenerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  std::string path;        // to listen on instead, as a socket of the file system; empty: none
  TlsFiles tls;            // without a certificate: plain HTTP
  int num_threads = 2;
  HttpLimits limits;
  // The budget that all that is sent counts in; not null.
  std::shared_ptr<RequestMemory> memory = std::make_shared<RequestMemory>();
  AnswerObserver observer;  // of every answer, refusals too; empty: none
  LogFormat log_format = LogFormat::kText;
  ErrorWriter write_error = [](std::string_view, const ApiError& e) { return error_body(e); };
};

class HttpListener {
 public:
  // Listens on an address or a path. Errors are listen_on_address()'s, listen_on_path()'s and
  // TlsCertificate::load()'s. An empty gate lets every request pass.
  static Result<std::unique_ptr<HttpListener>> start(const ListenerOptions& options,
                                                     HttpHandler handler, HttpGate gate = {});
  ~HttpListener();  // stop(0)

  std::uint16_t port() const;  // 0: it listens on a path
  int num_connections() const;

  // Closes idle connections and lets running requests finish until the deadline; true if all have.
  // A connection whose first request comes from here on serves that one, which is the gate's to
  // refuse, and is not waited for.
  bool drain(double deadline_s);
  // Accepts nothing more, drains, closes the rest and joins the threads.
  void stop(double deadline_s);

 private:
  struct Impl;
  explicit HttpListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
