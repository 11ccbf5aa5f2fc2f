// RequestRecord: what a load generator notes of one streamed request. Times are seconds since the
// run's start.
#pragma once

#include <string>
#include <vector>

namespace pagoda {

struct RequestRecord {
  double start_s = 0;            // its sending
  std::vector<double> events_s;  // arrival of every event that carries a choice
  double end_s = 0;              // its success or failure
  int num_input_tokens = 0;
  int num_output_tokens = 0;
  bool counted_by_server = false;  // the output tokens; else they are events with text
  std::string error;               // of a failed one, a line

  bool completed() const { return error.empty(); }
  // Computes latencies of a completed request as vLLM's benchmark defines them.
  double first_token_s() const { return events_s.front() - start_s; }  // time to first token
  double latency_s() const { return events_s.back() - start_s; }       // end to end
};

}  // namespace pagoda
