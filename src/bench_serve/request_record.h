// RequestRecord: the measurements of one streamed request. Times are in seconds since the run's
// start.
#pragma once

#include <string>
#include <vector>

namespace pagoda {

struct RequestRecord {
  double start_s = 0;            // when it was sent
  std::vector<double> events_s;  // arrival times of all events with a choice
  double end_s = 0;              // when it succeeded or failed
  int num_input_tokens = 0;
  int num_output_tokens = 0;
  // Whether num_output_tokens is the server's number. Otherwise it is the number of events with
  // text.
  bool counted_by_server = false;
  std::string error;  // one line; empty: no failure

  bool completed() const { return error.empty(); }
  // Computes latencies of a completed request as vLLM's benchmark defines them.
  double first_token_s() const { return events_s.front() - start_s; }  // time to first token
  double latency_s() const { return events_s.back() - start_s; }       // end to end
};

}  // namespace pagoda
