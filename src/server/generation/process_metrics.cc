#include "server/generation/process_metrics.h"

#include "core/machine.h"

namespace pagoda {

std::vector<prometheus::MetricFamily> process_families() {
  const ProcessUsage usage = process_usage();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, double value) {
    if (value < 0) return;  // not told
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    families.push_back(
        {.name = name, .help = help, .type = prometheus::MetricType::Gauge, .metric = {metric}});
  };
  add("process_cpu_seconds_total", "User and system time of all threads.", usage.cpu_s);
  if (!families.empty()) {
    families.front().type = prometheus::MetricType::Counter;
    families.front().metric.front().counter.value = usage.cpu_s;
  }
  add("process_resident_memory_bytes", "Memory that is resident.",
      static_cast<double>(usage.resident_bytes));
  add("process_virtual_memory_bytes", "Addresses that are taken.",
      static_cast<double>(usage.virtual_bytes));
  add("process_open_fds", "Open files, connections among them.",
      static_cast<double>(usage.open_files));
  add("process_max_fds", "Files that may be open.", static_cast<double>(usage.max_open_files));
  add("process_start_time_seconds", "When it started, in seconds since 1970.", usage.start_s);
  return families;
}

}  // namespace pagoda
