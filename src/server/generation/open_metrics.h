// OpenMetrics' text format, version 1.0.0, which prometheus-cpp does not write.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace pagoda {

// Writes counters, gauges and histograms. REQUIRES: names of counters end with "_total".
std::string open_metrics_text(const std::vector<prometheus::MetricFamily>& families);

}  // namespace pagoda
