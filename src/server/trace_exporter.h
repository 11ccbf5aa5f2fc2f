// TraceExporter: sends a span of each traced request to a collector, with a span below it for each
// sample. The protocol is OpenTelemetry's in JSON over HTTP (OTLP 1.0).
//
// A thread sends spans in batches, so a collector that is slow or away delays no answer. Spans are
// lost then, and a warning tells of it. No prompt, answer or key is in them. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "server/http/access_log.h"

namespace pagoda {

class TraceExporter {
 public:
  // Starts the thread. `url`: the collector's, http or https; one without a path gets "/v1/traces".
  // Spans bear the service name that OTEL_SERVICE_NAME gives, or "pagoda". kInvalidArgument: no such
  // URL.
  static Result<std::unique_ptr<TraceExporter>> start(const std::string& url);
  // Sends what waits, for some seconds at most.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  // Writes the span of a request that has ended now. `route`: the endpoint's path. REQUIRES: it has
  // a trace.
  void write(const AccessRecord& record, std::string_view route);

 private:
  struct Impl;
  explicit TraceExporter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
