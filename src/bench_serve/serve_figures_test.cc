#include "bench_serve/serve_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

RequestRecord record(double start_s, std::vector<double> events_s, int num_output_tokens) {
  const double end_s = events_s.back();
  return {.start_s = start_s,
          .events_s = std::move(events_s),
          .end_s = end_s,
          .num_input_tokens = 10,
          .num_output_tokens = num_output_tokens};
}

TEST(ServeFigures, PercentilesInterpolateAsNumpyDoes) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(percentile({10, 20}, 0.99), 19.9);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
}

TEST(ServeFigures, KnownTimesGiveKnownLatencies) {
  // The second answer has four tokens in three events.
  const std::vector<RequestRecord> records = {record(0, {0.1, 0.2, 0.4}, 3),
                                              record(1, {1.3, 1.5, 1.6}, 4)};
  const ServeFigures figures = serve_figures(records, 2);
  EXPECT_NEAR(figures.ttft_ms.mean, 200, 1e-9);
  EXPECT_NEAR(figures.ttft_ms.median, 200, 1e-9);
  EXPECT_NEAR(figures.ttft_ms.p99, 298, 1e-9);
  EXPECT_NEAR(figures.e2el_ms.mean, 500, 1e-9);
  EXPECT_NEAR(figures.tpot_ms.mean, (150 + 100) / 2.0, 1e-9);
  EXPECT_NEAR(figures.itl_ms.mean, (100 + 200 + 200 + 100) / 4.0, 1e-9);
  EXPECT_NEAR(figures.itl_ms.median, 150, 1e-9);
}

TEST(ServeFigures, ThroughputIsOverTheDuration) {
  const std::vector<RequestRecord> records = {record(0, {0.1, 0.2, 0.4}, 3),
                                              record(1, {1.3, 1.5, 1.6}, 4)};
  const ServeFigures figures = serve_figures(records, 2);
  EXPECT_EQ(figures.completed, 2);
  EXPECT_EQ(figures.total_input_tokens, 20);
  EXPECT_EQ(figures.total_output_tokens, 7);
  EXPECT_DOUBLE_EQ(figures.request_throughput, 1);
  EXPECT_DOUBLE_EQ(figures.output_throughput, 3.5);
  EXPECT_DOUBLE_EQ(figures.total_token_throughput, 13.5);
  EXPECT_NEAR(figures.max_output_tokens_per_s, 4, 1e-9);  // in the second second
}

TEST(ServeFigures, AnAnswerOfOneTokenHasNoTimePerOutputToken) {
  const std::vector<RequestRecord> records = {record(0, {0.5}, 1)};
  const ServeFigures figures = serve_figures(records, 1);
  EXPECT_EQ(figures.tpot_ms.mean, 0);
  EXPECT_EQ(figures.itl_ms.p99, 0);
  EXPECT_DOUBLE_EQ(figures.ttft_ms.mean, 500);
  EXPECT_DOUBLE_EQ(figures.e2el_ms.mean, 500);
}

TEST(ServeFigures, FailedRequestsOnlyCountAsFailed) {
  std::vector<RequestRecord> records = {record(0, {0.5, 1}, 2), record(0, {9}, 100)};
  records[1].error = "HTTP 500";
  const ServeFigures figures = serve_figures(records, 10);
  EXPECT_EQ(figures.completed, 1);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.total_output_tokens, 2);
  EXPECT_DOUBLE_EQ(figures.e2el_ms.p99, 1000);
}

TEST(ServeFigures, RequestsThatTouchAreNotAtOnce) {
  const std::vector<RequestRecord> records = {record(0, {1}, 1), record(1, {2}, 1),
                                              record(0.5, {1.5}, 1), record(1.2, {1.4}, 1)};
  EXPECT_EQ(serve_figures(records, 2).max_concurrent_requests, 3);
}

TEST(ServeFigures, NothingDoneIsAllZeros) {
  const ServeFigures figures = serve_figures({}, 0);
  EXPECT_EQ(figures.request_throughput, 0);
  EXPECT_EQ(figures.max_output_tokens_per_s, 0);
  EXPECT_EQ(figures.max_concurrent_requests, 0);
}

TEST(ServeFigures, JsonHasTheNamesOfVllm) {
  const std::vector<RequestRecord> records = {record(0, {0.5, 1}, 2)};
  const OrderedJson json = serve_figures_json(serve_figures(records, 1));
  for (const char* name :
       {"duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
        "request_throughput", "output_throughput", "total_token_throughput",
        "max_output_tokens_per_s", "max_concurrent_requests"})
    EXPECT_TRUE(json.contains(name)) << name;
  for (const char* latency : {"ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"}) {
    for (const char* of : {"mean_", "median_", "p99_"})
      EXPECT_TRUE(json.contains(std::string(of) + latency)) << of << latency;
  }
}

TEST(ServeFigures, TheBlockLooksLikeVllms) {
  const std::vector<RequestRecord> records = {record(0, {0.5, 1}, 2)};
  const std::string block =
      serve_figures_block(serve_figures(records, 1), {.request_rate = 10, .max_concurrency = 8});
  EXPECT_THAT(block, HasSubstr("============ Serving Benchmark Result ============\n"));
  EXPECT_THAT(block, HasSubstr("Successful requests:                     1         \n"));
  EXPECT_THAT(block, HasSubstr("Maximum request concurrency:             8         \n"));
  EXPECT_THAT(block, HasSubstr("Request rate configured (RPS):           10.00     \n"));
  EXPECT_THAT(block, HasSubstr("---------------Time to First Token----------------\n"));
  EXPECT_THAT(block, HasSubstr("-----Time per Output Token (excl. 1st token)------\n"));
  EXPECT_THAT(block, HasSubstr("Median E2EL (ms):                        1000.00   \n"));
  EXPECT_THAT(serve_figures_block({}, {}), ::testing::Not(HasSubstr("concurrency:")));
}

}  // namespace
}  // namespace pagoda
