// TraceExporter: sends a span of each traced request to a collector, with a span below it for each
// sample. The protocol is OpenTelemetry's in JSON over HTTP (OTLP 1.0).
//
// A thread sends spans in batches, so a collector that is slow or away delays no answer. Then spans
// are dropped, and a warning is logged. No prompt, answer or key is in them. Thread-safe.
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
  // The service name of spans is OTEL_SERVICE_NAME, or else "pagoda". kInvalidArgument: `url` is
  // not such a URL.
  static Result<std::unique_ptr<TraceExporter>> start(const std::string& url);
  // Sends the spans that wait, for some seconds at most.
  ~TraceExporter();
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  // Queues the spans of a request that has just ended. `route`: its endpoint's path. REQUIRES: the
  // request is traced.
  void write(const AccessRecord& record, std::string_view route);

 private:
  struct Impl;
  explicit TraceExporter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
