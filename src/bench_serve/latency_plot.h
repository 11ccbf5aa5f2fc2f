// Draws the latencies of a run over time as an SVG, which any browser opens.
#pragma once

#include <span>
#include <string>

#include "bench_serve/request_record.h"

namespace pagoda {

// Returns a plot with three panels over the seconds since the start. Each dot is a completed
// request (class "ttft", "e2el" or "tpot") at its start, so that a request's dots stand above one
// another. `title` may be any text.
std::string latency_plot_svg(std::span<const RequestRecord> records, const std::string& title);

}  // namespace pagoda
