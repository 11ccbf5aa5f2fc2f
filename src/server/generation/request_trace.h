// RequestTrace: one request's place in a trace, by W3C's Trace Context, and what its samples tell of
// themselves for the span that the request becomes (trace_exporter.h). Thread-safe.
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
    Clock::TimePoint arrival;  // of the request that it answers
    ServerMetrics::FinishedSample figures;
  };

  // Begins this server's part of a trace from a request's `traceparent` header; "": it has none. A
  // header that can't be read counts as none. Returns null where the client that asks keeps no
  // trace of this request.
  static std::shared_ptr<RequestTrace> begin(std::string_view traceparent);

  void add(const Sample& sample);

  const std::string& trace_id() const { return trace_id_; }  // 32 hexadecimal digits
  const std::string& parent_id() const {
    return parent_id_;
  }  // 16 of them; empty: it has no parent
  std::vector<Sample> samples() const;

 private:
  RequestTrace() = default;

  std::string trace_id_, parent_id_;
  mutable std::mutex mutex_;
  std::vector<Sample> samples_;
};

}  // namespace pagoda
