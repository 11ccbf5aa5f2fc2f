// RequestTrace: one request's place in a trace (W3C Trace Context), and the figures of its samples.
// The request becomes a span (trace_exporter.h). Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "server/generation/metrics.h"

namespace pagoda {

class RequestTrace {
 public:
  struct Sample {
    Clock::TimePoint arrival;  // when the HTTP request came
    ServerMetrics::FinishedSample figures;
  };

  // Begins this server's part of a trace from a request's `traceparent` header; "": no header. A
  // header that can't be read counts as none. Returns null if the client does not record the trace.
  static std::shared_ptr<RequestTrace> begin(std::string_view traceparent);

  void add(const Sample& sample);

  const std::string& trace_id() const { return trace_id_; }  // 32 hexadecimal digits
  // Returns 16 hexadecimal digits; empty: the trace begins here.
  const std::string& parent_id() const { return parent_id_; }
  std::vector<Sample> samples() const;

 private:
  RequestTrace() = default;

  std::string trace_id_, parent_id_;
  mutable std::mutex mutex_;
  std::vector<Sample> samples_;
};

}  // namespace pagoda
