// HttpListener: accepts HTTP/1.1 connections, plain or with TLS, and passes their requests to one
// handler, on a few threads.
//
// Keep-alive, pipelining, chunked bodies and "Expect: 100-continue" are supported. Bytes that are
// not HTTP are answered 400, and the connection is closed. A header or body over its limit is
// answered 431 or 413 before the rest is read. A client that is too slow is answered 408. A request
// that the gate refuses is answered before its body is read. Then the connection is closed, unless
// little of the body is left. All members are thread-safe except stop(), which may be called once.
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
  std::uint16_t port = 0;  // 0: any free port
  std::string path;        // of a socket to listen on instead; empty: none
  TlsFiles tls;            // without a certificate: plain HTTP
  int num_threads = 2;
  HttpLimits limits;
  // The memory budget in which all that is sent counts; not null.
  std::shared_ptr<RequestMemory> memory = std::make_shared<RequestMemory>();
  AnswerObserver observer;  // called for every answer, also a refusal; empty: none
  LogFormat log_format = LogFormat::kText;
  ErrorWriter write_error = [](const FailedRequest&, const ApiError& e) { return error_body(e); };
};

class HttpListener {
 public:
  // Listens on an address or a path. Errors are listen_on_address()'s, listen_on_path()'s and
  // TlsCertificate::load()'s. An empty gate lets every request pass.
  static Result<std::unique_ptr<HttpListener>> start(const ListenerOptions& options,
                                                     HttpHandler handler, HttpGate gate = {});
  ~HttpListener();  // calls stop(0)

  std::uint16_t port() const;  // 0: it listens on a path
  int num_connections() const;

  // Closes idle connections and lets running requests finish until the deadline; returns whether
  // all have. A connection without a request so far may still send one, which the gate may refuse.
  // Nothing waits for such connections.
  bool drain(double deadline_s);
  // Stops accepting, drains, closes the remaining connections and joins the threads.
  void stop(double deadline_s);

 private:
  struct Impl;
  explicit HttpListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
