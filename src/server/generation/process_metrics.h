// Figures of this process under the names that Prometheus' client libraries give them.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace pagoda {

// Returns a family, without labels, for each figure that the system tells. Thread-safe.
std::vector<prometheus::MetricFamily> process_families();

}  // namespace pagoda
