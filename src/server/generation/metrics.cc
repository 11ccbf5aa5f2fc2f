#include "server/generation/metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "server/generation/open_metrics.h"
#include "server/generation/process_metrics.h"

namespace pagoda {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using prometheus::Histogram;
using prometheus::MetricType;

// vLLM's bounds, so that dashboards for vLLM work here.
const Buckets kFirstTokenBuckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                    0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                    20,    40,    80,   160,  640,  2560};
const Buckets kTokenBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                               0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const Buckets kLatencyBuckets = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                 30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
// A probe takes less than a millisecond, an answer up to minutes.
const Buckets kHttpBuckets = {0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1,
                              2.5,   5,     10,   30,   60,  120,  300, 600};
const Buckets kCountBuckets = {1,   2,    5,    10,   20,    50,    100,   200,
                               500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

constexpr std::array kFinishReasons = {FinishReason::kStop, FinishReason::kLength,
                                       FinishReason::kCancelled, FinishReason::kError};

prometheus::MetricFamily single(const char* name, const char* help, MetricType type, double value,
                                const prometheus::Labels& labels) {
  prometheus::MetricFamily family{
      .name = std::string("pagoda:") + name, .help = help, .type = type, .metric = {}};
  prometheus::ClientMetric metric;
  for (const auto& [label, text] : labels) metric.label.push_back({label, text});
  if (type == MetricType::Gauge) {
    metric.gauge.value = value;
  } else {
    metric.counter.value = value;
  }
  family.metric.push_back(std::move(metric));
  return family;
}

// The metric families of /metrics, in order.
class FamilyList {
 public:
  FamilyList(std::vector<prometheus::MetricFamily> families, const prometheus::Labels& labels)
      : families_(std::move(families)), labels_(labels) {}

  void gauge(const char* name, const char* help, double value) {
    families_.push_back(single(name, help, MetricType::Gauge, value, labels_));
  }
  // Adds a gauge of value 1, whose labels hold the information.
  void info(const char* name, const char* help, const prometheus::Labels& labels) {
    prometheus::Labels all = labels_;
    all.insert(labels.begin(), labels.end());
    families_.push_back(single(name, help, MetricType::Gauge, 1, all));
  }
  void counter(const char* name, const char* help, std::uint64_t value) {
    const auto count = static_cast<double>(value);
    families_.push_back(single(name, help, MetricType::Counter, count, labels_));
  }
  // Adds a histogram that the engine counts. `counts`: one per bound, and one for larger values.
  void histogram(const char* name, const char* help, std::span<const int> bounds,
                 std::span<const std::uint64_t> counts, std::uint64_t sum) {
    prometheus::MetricFamily family = single(name, help, MetricType::Histogram, 0, labels_);
    prometheus::ClientMetric::Histogram& histogram = family.metric.front().histogram;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      histogram.sample_count += counts[i];
      const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
      histogram.bucket.push_back(
          {.cumulative_count = histogram.sample_count, .upper_bound = bound});
    }
    histogram.sample_sum = static_cast<double>(sum);
    families_.push_back(std::move(family));
  }
  void append(std::vector<prometheus::MetricFamily> families) {
    std::ranges::move(families, std::back_inserter(families_));
  }
  std::string text(ServerMetrics::Format format) const {
    return format == ServerMetrics::Format::kOpenMetrics
               ? open_metrics_text(families_)
               : prometheus::TextSerializer().Serialize(families_);
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
  const prometheus::Labels& labels_;
};

void add_state(FamilyList& list, const EngineStats& stats) {
  const double used =
      stats.num_blocks == 0 ? 0 : 1 - static_cast<double>(stats.num_free_blocks) / stats.num_blocks;
  list.gauge("num_requests_running", "Sequences in the engine's steps.", stats.num_running);
  list.gauge("num_requests_waiting", "Sequences in the queue, and preempted ones.",
             stats.num_waiting);
  list.gauge("num_queued_prompts", "Prompts in the queue: at most --max-queue.",
             stats.num_waiting_requests);
  list.gauge("kv_cache_usage_perc", "Share of the KV blocks in use; 1 is all.", used);
  list.gauge("engine_healthy", "1 while the engine works.", stats.healthy ? 1 : 0);
  list.gauge("num_kv_blocks", "KV blocks.", stats.num_blocks);
  list.gauge("weight_bytes_per_step", "Bytes of weights that a decode step of one sequence reads.",
             static_cast<double>(stats.runner.weight_bytes_per_step +
                                 stats.runner.expert_bytes_per_token));
  list.gauge("kv_bytes_per_token", "Bytes of KV cache that a token takes.",
             static_cast<double>(stats.runner.kv_bytes_per_token));
}

// Adds the cache's settings under vLLM's names, with Python's words for booleans.
void add_cache_config(FamilyList& list, const KvCacheInfo& cache) {
  list.info(
      "cache_config_info", "The KV cache as it was sized: its labels tell.",
      {{"block_size", std::to_string(cache.block_size)},
       {"cache_dtype", kv_formats_name(cache.formats)},
       {"enable_prefix_caching", cache.has_prefix_cache ? "True" : "False"},
       {"kv_cache_dtype_skip_layers", fmt::format("{}", fmt::join(cache.skipped_layers, ","))},
       {"num_gpu_blocks", std::to_string(cache.num_blocks)},
       {"prefix_caching_hash_algo", "sha256"}});
}

void add_steps(FamilyList& list, const EngineStats& stats) {
  list.counter("prompt_tokens_total", "Prompt tokens computed.", stats.num_prompt_tokens);
  list.counter("generation_tokens_total", "Tokens generated.", stats.num_generated_tokens);
  list.counter("finished_requests_total", "Requests that the engine has finished.",
               stats.num_finished_requests);
  list.counter("engine_steps_total", "Steps of the engine.", stats.num_steps);
  list.histogram("iteration_tokens",
                 "Tokens of a step: of prompts that it computed, and that came of it.",
                 kStepTokenBounds, stats.num_steps_by_tokens,
                 stats.num_prompt_tokens + stats.num_generated_tokens);
  list.counter("lookahead_steps_total",
               "Steps started before the tokens of the last one were read.",
               stats.num_lookahead_steps);
  list.counter("lookahead_dropped_positions_total",
               "Positions that such steps computed for sequences that had ended.",
               stats.num_dropped_positions);
  list.counter("deferred_draws_total",
               "Draws put off to a later step: a grammar's mask was not there.",
               stats.num_deferred_draws);
  list.counter("contiguous_steps_total", "Steps whose sequences all lie in consecutive KV blocks.",
               stats.runner.num_contiguous_steps);
  list.counter("paged_steps_total", "Steps with a sequence whose KV blocks lie apart.",
               stats.runner.num_paged_steps);
  list.counter("step_words_total", "Words of 4 bytes written to describe steps to the device.",
               stats.runner.num_step_words);
  list.counter("evaluations_total", "Evaluations of a lazy backend.",
               stats.runner.exec.num_evaluations);
  list.counter("late_kernels_total", "Kernels that were built in the middle of a step.",
               stats.runner.exec.num_late_kernels);
  list.counter("decoded_attentions_total",
               "Calls of attention, a layer's each, that decoded the KV cache to float32 first.",
               stats.runner.exec.num_decoded_attentions);
  list.counter("decode_expert_bytes_total",
               "Bytes of experts that decode steps have read, once for each expert and step.",
               stats.runner.num_decode_expert_bytes);
  list.counter("logits_rows_total", "Rows through the last projection.",
               stats.runner.num_logits_rows);
  list.counter("logits_rows_skipped_total", "Rows that the last projection left out.",
               stats.runner.num_logits_rows_skipped);
}

void add_cache(FamilyList& list, const EngineStats& stats) {
  list.counter("num_preemptions_total",
               "Sequences that gave their blocks back and were computed again.",
               stats.num_preemptions);
  list.counter("priority_turns_total",
               "Requests that ran before others because those had overtaken them for long.",
               stats.num_priority_turns);
  list.counter("prefix_cache_queries_total", "Prompt tokens that asked the prefix cache.",
               stats.num_prefix_queries);
  list.counter("prefix_cache_hits_total",
               "Prompt tokens that the prefix cache had, in whole blocks.", stats.num_prefix_hits);
  list.counter("prefix_cache_evictions_total", "Blocks that the prefix cache gave up.",
               stats.num_prefix_evictions);
  list.counter("prefix_cache_hashed_blocks_total", "Blocks hashed for the prefix cache.",
               stats.num_hashed_blocks);
  list.counter("kv_block_copies_total", "Shared KV blocks copied before a write.",
               stats.num_block_copies);
}

void add_disk(FamilyList& list, const BlockTierCounters& tier) {
  list.counter("prefix_cache_disk_written_blocks_total", "Blocks written to --prefix-cache-dir.",
               tier.num_written);
  list.counter("prefix_cache_disk_dropped_blocks_total",
               "Blocks that came faster than they were written, or that the disk did not take.",
               tier.num_dropped);
  list.counter("prefix_cache_disk_read_blocks_total", "Blocks read from --prefix-cache-dir.",
               tier.num_read);
  list.counter("prefix_cache_disk_failed_reads_total",
               "Reads of blocks that were wrong, torn, unreadable or too late.", tier.num_failed);
  list.counter("prefix_cache_disk_evicted_files_total",
               "Files removed there because others were used more recently.",
               tier.num_evicted_files);
  list.gauge("prefix_cache_disk_bytes", "Bytes of the files there.",
             static_cast<double>(tier.num_bytes));
}

}  // namespace

struct ServerMetrics::Impl {
  explicit Impl(const std::string& model_name) : labels{{"model_name", model_name}} {
    auto& success = prometheus::BuildCounter()
                        .Name("pagoda:request_success_total")
                        .Help("Answers finished, by reason.")
                        .Labels(labels)
                        .Register(registry);
    for (const FinishReason reason : kFinishReasons) {
      finished[static_cast<int>(reason)] =
          &success.Add({{"finished_reason", std::string(finish_reason_name(reason))}});
    }
  }

  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    auto& family = prometheus::BuildHistogram()
                       .Name(std::string("pagoda:") + name)
                       .Help(help)
                       .Labels(labels)
                       .Register(registry);
    return family.Add({}, buckets);
  }

  prometheus::Labels labels;
  prometheus::Registry registry;
  std::array<prometheus::Counter*, 5> finished{};
  // The name is the one that dashboards for all kinds of servers read.
  prometheus::Family<prometheus::Counter>& http_requests =
      prometheus::BuildCounter()
          .Name("http_requests_total")
          .Help("Answers to HTTP requests, by path, method and the status' first digit.")
          .Labels(labels)
          .Register(registry);
  prometheus::Family<Histogram>& http_durations =
      prometheus::BuildHistogram()
          .Name("http_request_duration_seconds")
          .Help("First byte of a request to the last of its answer.")
          .Labels(labels)
          .Register(registry);
  Histogram& first_token =
      histogram("time_to_first_token_seconds", "Arrival to first token.", kFirstTokenBuckets);
  Histogram& inter_token =
      histogram("inter_token_latency_seconds", "Between two deliveries of tokens.", kTokenBuckets);
  Histogram& per_output_token =
      histogram("request_time_per_output_token_seconds",
                "Mean of an answer's tokens after its first.", kTokenBuckets);
  Histogram& latency =
      histogram("e2e_request_latency_seconds", "Arrival to last token.", kLatencyBuckets);
  Histogram& queue =
      histogram("request_queue_time_seconds", "Arrival to a prompt's first step.", kLatencyBuckets);
  Histogram& prefill = histogram("request_prefill_time_seconds",
                                 "A prompt's first step to the first token.", kLatencyBuckets);
  Histogram& decode =
      histogram("request_decode_time_seconds", "First token to last token.", kLatencyBuckets);
  Histogram& inference = histogram("request_inference_time_seconds",
                                   "A prompt's first step to the last token.", kLatencyBuckets);
  Histogram& prompt_tokens =
      histogram("request_prompt_tokens", "Tokens of a prompt.", kCountBuckets);
  Histogram& output_tokens =
      histogram("request_generation_tokens", "Tokens of an answer.", kCountBuckets);
};

ServerMetrics::ServerMetrics(const std::string& model_name)
    : impl_(std::make_unique<Impl>(model_name)) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::observe_first_token(double seconds) {
  impl_->first_token.Observe(seconds);
}

void ServerMetrics::observe_inter_token(double seconds) {
  impl_->inter_token.Observe(seconds);
}

void ServerMetrics::observe_finished(const FinishedSample& sample) {
  prometheus::Counter* counter = impl_->finished[static_cast<int>(sample.reason)];
  if (counter != nullptr) counter->Increment();
  impl_->latency.Observe(sample.latency_s);
  impl_->prompt_tokens.Observe(sample.num_prompt_tokens);
  impl_->output_tokens.Observe(sample.num_output_tokens);
  if (sample.num_output_tokens > 0) {
    impl_->queue.Observe(sample.queue_s);
    impl_->prefill.Observe(sample.prefill_s);
    impl_->decode.Observe(sample.decode_s);
    impl_->inference.Observe(sample.prefill_s + sample.decode_s);
  }
  if (sample.num_output_tokens > 1) {
    impl_->per_output_token.Observe(sample.decode_s / (sample.num_output_tokens - 1));
  }
}

void ServerMetrics::count_http_answer(std::string_view handler, std::string_view method, int status,
                                      double seconds) {
  const std::string digit = status == 0 ? "none" : fmt::format("{}xx", status / 100);
  impl_->http_requests
      .Add({{"handler", std::string(handler)}, {"method", std::string(method)}, {"status", digit}})
      .Increment();
  impl_->http_durations.Add({{"handler", std::string(handler)}, {"status", digit}}, kHttpBuckets)
      .Observe(seconds);
}

std::string ServerMetrics::text(const EngineStats& stats, const EngineLimits& limits,
                                Format format) const {
  FamilyList list(impl_->registry.Collect(), impl_->labels);
  add_state(list, stats);
  list.gauge("max_queued_prompts", "Prompts that the queue holds: --max-queue.", limits.max_queue);
  add_cache_config(list, limits.kv_cache);
  add_steps(list, stats);
  add_cache(list, stats);
  add_disk(list, stats.tier);
  list.append(process_families());
  return list.text(format);
}

}  // namespace pagoda
