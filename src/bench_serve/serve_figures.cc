#include "bench_serve/serve_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/json.h"

namespace pagoda {
namespace {

LatencyFigures latency_figures(const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {.mean = 1e3 * sum / static_cast<double>(seconds.size()),
          .median = 1e3 * percentile(seconds, 0.5),
          .p99 = 1e3 * percentile(seconds, 0.99)};
}

// Returns the most tokens in one second. Only the total of a request's tokens is known, so each of
// its events counts an equal part.
double best_second(std::span<const RequestRecord> records) {
  double first_start = std::numeric_limits<double>::infinity();
  for (const RequestRecord& record : records) {
    if (record.completed()) first_start = std::min(first_start, record.start_s);
  }
  std::map<std::int64_t, double> tokens;
  for (const RequestRecord& record : records) {
    if (!record.completed()) continue;
    const double part = record.num_output_tokens / static_cast<double>(record.events_s.size());
    for (const double event : record.events_s)
      tokens[static_cast<std::int64_t>(event - first_start)] += part;
  }
  double best = 0;
  for (const auto& [second, count] : tokens) best = std::max(best, count);
  return best;
}

int most_at_once(std::span<const RequestRecord> records) {
  std::vector<std::pair<double, int>> changes;  // at equal times, ends are sorted before starts
  for (const RequestRecord& record : records) {
    changes.emplace_back(record.start_s, 1);
    changes.emplace_back(record.end_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int in_flight = 0;
  int most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, in_flight += change);
  return most;
}

void add_latency(OrderedJson& json, const std::string& name, const LatencyFigures& figures) {
  json["mean_" + name] = figures.mean;
  json["median_" + name] = figures.median;
  json["p99_" + name] = figures.p99;
}

std::string number_line(const char* label, double value) {
  return fmt::format("{:<40} {:<10.2f}\n", label, value);
}

std::string count_line(const char* label, std::int64_t value) {
  return fmt::format("{:<40} {:<10}\n", label, value);
}

std::string latency_lines(const char* title, const char* name, const LatencyFigures& figures) {
  return fmt::format("{:-^50}\n", title) +
         number_line(fmt::format("Mean {} (ms):", name).c_str(), figures.mean) +
         number_line(fmt::format("Median {} (ms):", name).c_str(), figures.median) +
         number_line(fmt::format("P99 {} (ms):", name).c_str(), figures.p99);
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

ServeFigures serve_figures(std::span<const RequestRecord> records, double duration_s) {
  ServeFigures figures = {.duration_s = duration_s};
  std::vector<double> ttft, tpot, itl, e2el;
  for (const RequestRecord& record : records) {
    if (!record.completed()) {
      ++figures.failed;
      continue;
    }
    ++figures.completed;
    figures.total_input_tokens += record.num_input_tokens;
    figures.total_output_tokens += record.num_output_tokens;
    ttft.push_back(record.first_token_s());
    e2el.push_back(record.latency_s());
    if (record.num_output_tokens > 1)
      tpot.push_back((e2el.back() - ttft.back()) / (record.num_output_tokens - 1));
    for (std::size_t i = 1; i < record.events_s.size(); ++i)
      itl.push_back(record.events_s[i] - record.events_s[i - 1]);
  }
  if (duration_s > 0) {
    const auto outputs = static_cast<double>(figures.total_output_tokens);
    figures.request_throughput = figures.completed / duration_s;
    figures.output_throughput = outputs / duration_s;
    figures.total_token_throughput =
        (outputs + static_cast<double>(figures.total_input_tokens)) / duration_s;
  }
  figures.max_output_tokens_per_s = best_second(records);
  figures.max_concurrent_requests = most_at_once(records);
  figures.ttft_ms = latency_figures(ttft);
  figures.tpot_ms = latency_figures(tpot);
  figures.itl_ms = latency_figures(itl);
  figures.e2el_ms = latency_figures(e2el);
  return figures;
}

OrderedJson serve_figures_json(const ServeFigures& figures) {
  OrderedJson json = {{"duration", figures.duration_s},
                      {"completed", figures.completed},
                      {"failed", figures.failed},
                      {"total_input_tokens", figures.total_input_tokens},
                      {"total_output_tokens", figures.total_output_tokens},
                      {"request_throughput", figures.request_throughput},
                      {"output_throughput", figures.output_throughput},
                      {"total_token_throughput", figures.total_token_throughput},
                      {"max_output_tokens_per_s", figures.max_output_tokens_per_s},
                      {"max_concurrent_requests", figures.max_concurrent_requests}};
  add_latency(json, "ttft_ms", figures.ttft_ms);
  add_latency(json, "tpot_ms", figures.tpot_ms);
  add_latency(json, "itl_ms", figures.itl_ms);
  add_latency(json, "e2el_ms", figures.e2el_ms);
  return json;
}

std::string serve_figures_block(const ServeFigures& figures, const LoadShape& shape) {
  std::string block = fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  block += count_line("Successful requests:", figures.completed);
  block += count_line("Failed requests:", figures.failed);
  if (shape.max_concurrency > 0)
    block += count_line("Maximum request concurrency:", shape.max_concurrency);
  if (std::isfinite(shape.request_rate))
    block += number_line("Request rate configured (RPS):", shape.request_rate);
  block += number_line("Benchmark duration (s):", figures.duration_s);
  block += count_line("Total input tokens:", figures.total_input_tokens);
  block += count_line("Total generated tokens:", figures.total_output_tokens);
  block += number_line("Request throughput (req/s):", figures.request_throughput);
  block += number_line("Output token throughput (tok/s):", figures.output_throughput);
  block += number_line("Peak output token throughput (tok/s):", figures.max_output_tokens_per_s);
  block += number_line("Peak concurrent requests:", figures.max_concurrent_requests);
  block += number_line("Total token throughput (tok/s):", figures.total_token_throughput);
  block += latency_lines("Time to First Token", "TTFT", figures.ttft_ms);
  block += latency_lines("Time per Output Token (excl. 1st token)", "TPOT", figures.tpot_ms);
  block += latency_lines("Inter-token Latency", "ITL", figures.itl_ms);
  block += latency_lines("End-to-end Latency", "E2EL", figures.e2el_ms);
  return block + std::string(50, '=') + "\n";
}

}  // namespace pagoda
