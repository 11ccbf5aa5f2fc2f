// ServeFigures: the results of a load run, with vLLM's definitions and names.
//
//   ttft  time to first token: from sending a request to its first event
//   tpot  time per output token: (end-to-end - ttft) / (output tokens - 1), of answers of two or
//         more
//   itl   inter-token latency: between two events of a request
//   e2el  end-to-end latency: from sending a request to its last event
//
// Means, medians and percentiles are over completed requests; those of itl are over all gaps.
// Percentiles interpolate linearly between neighbours, as in numpy. `max_output_tokens_per_s` is
// the best of the run's whole seconds. `max_concurrent_requests` counts requests in flight at one
// instant (vLLM counts those within one second).
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
  double request_throughput = 0;      // per second
  double output_throughput = 0;       // per second
  double total_token_throughput = 0;  // per second, including prompts
  double max_output_tokens_per_s = 0;
  int max_concurrent_requests = 0;
  LatencyFigures ttft_ms, tpot_ms, itl_ms, e2el_ms;
};

ServeFigures serve_figures(std::span<const RequestRecord> records, double duration_s);

// Returns the percentile for `share`, which is 0.5 for the median. The values may be in any order.
// Returns 0 if there are none.
double percentile(std::vector<double> values, double share);

// Returns the figures as JSON with vLLM's names.
OrderedJson serve_figures_json(const ServeFigures& figures);

struct LoadShape {
  double request_rate = std::numeric_limits<double>::infinity();  // per second
  int max_concurrency = 0;                                        // 0: no limit
};
// Returns the text block that vLLM's benchmark prints.
std::string serve_figures_block(const ServeFigures& figures, const LoadShape& shape);

}  // namespace pagoda
