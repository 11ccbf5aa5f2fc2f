// ServeFigures: what a run of requests against a server comes to, in vLLM's definitions and names.
//
//   ttft  time to first token: from sending a request to its first event
//   tpot  time per output token: (end-to-end - ttft) / (output tokens - 1), of answers of two or
//         more
//   itl   inter-token latency: between two events of a request
//   e2el  end-to-end latency: from sending a request to its last event
//
// Means, medians and percentiles are over requests, of itl over all gaps; percentiles interpolate
// linearly between neighbours, as numpy does. Figures cover completed requests.
// `max_output_tokens_per_s` is the best of the run's whole seconds; `max_concurrent_requests` are
// requests in flight at one instant (vLLM counts those that share a second).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bench_serve/request_record.h"
#include "core/ordered_json.h"

namespace pagoda {

struct LatencyFigures {
  double mean = 0, median = 0, p99 = 0;  // ms; 0 without samples
};

struct ServeFigures {
  double duration_s = 0;
  int completed = 0;
  int failed = 0;
  std::int64_t total_input_tokens = 0;
  std::int64_t total_output_tokens = 0;
  double request_throughput = 0;      // a second
  double output_throughput = 0;       // tokens a second
  double total_token_throughput = 0;  // tokens a second, prompts' too
  double max_output_tokens_per_s = 0;
  int max_concurrent_requests = 0;
  LatencyFigures ttft_ms, tpot_ms, itl_ms, e2el_ms;
};

ServeFigures serve_figures(std::span<const RequestRecord> records, double duration_s);

// Returns the value below which that share of the numbers lies; they may be in any order. A share
// of 0.5 is the median; no numbers give 0.
double percentile(std::vector<double> values, double share);

// Returns the figures under vLLM's names.
OrderedJson serve_figures_json(const ServeFigures& figures);

struct LoadShape {
  double request_rate = std::numeric_limits<double>::infinity();  // requests a second
  int max_concurrency = 0;                                        // 0: no limit
};
// Returns the block that vLLM's benchmark prints.
std::string serve_figures_block(const ServeFigures& figures, const LoadShape& shape);

}  // namespace pagoda
