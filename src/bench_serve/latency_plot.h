// An SVG of a run's latencies over its time: a picture that any browser opens.
#pragma once

#include <span>
#include <string>

#include "bench_serve/request_record.h"

namespace pagoda {

// Returns a plot of three panels over seconds since the start, of completed requests: time to first
// token and end-to-end latency at each request's start, time per output token at its end. A dot a
// request (class "ttft", "e2el", "tpot"). `title` may hold any text.
std::string latency_plot_svg(std::span<const RequestRecord> records, const std::string& title);

}  // namespace pagoda
