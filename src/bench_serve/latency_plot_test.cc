#include "bench_serve/latency_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(LatencyPlot, EachRequestIsADotAPanel) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 7; ++i) {
    records.push_back({.start_s = 1.0 * i,
                       .events_s = {i + 0.1, i + 0.3},
                       .end_s = i + 0.3,
                       .num_output_tokens = i == 0 ? 1 : 2});
  }
  records.push_back({.error = "no"});
  const std::string svg = latency_plot_svg(records, "a <model> & more");
  EXPECT_EQ(count(svg, "class=\"ttft\""), 7);
  EXPECT_EQ(count(svg, "class=\"e2el\""), 7);
  EXPECT_EQ(count(svg, "class=\"tpot\""), 6);
  EXPECT_THAT(svg, HasSubstr("a &lt;model&gt; &amp; more"));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
}

TEST(LatencyPlot, ARequestsDotsStandAboveOneAnother) {
  const std::vector<RequestRecord> records = {
      {.start_s = 1, .events_s = {2, 5}, .end_s = 5, .num_output_tokens = 2}};
  const std::string svg = latency_plot_svg(records, "");
  EXPECT_EQ(count(svg, "cx=\"240.0\""), 3);
  EXPECT_EQ(count(svg, "<circle class"), 3);
}

TEST(LatencyPlot, NothingDoneIsAnEmptyPicture) {
  const std::string svg = latency_plot_svg({}, "");
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("circle class")));
}

}  // namespace
}  // namespace pagoda
