#include "server/generation/request_trace.h"

#include <gmock/gmock.h>

namespace pagoda {
namespace {

using ::testing::IsNull;
using ::testing::MatchesRegex;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

TEST(RequestTrace, GoesOnWithTheTraceOfWhoAsks) {
  for (const std::string& header :
       {"00-" + kTrace + "-" + kParent + "-01", "00-" + kTrace + "-" + kParent + "-03",
        "cc-" + kTrace + "-" + kParent + "-0b-what-a-later-version-has"}) {
    const auto trace = RequestTrace::begin(header);
    EXPECT_EQ(trace->trace_id(), kTrace);
    EXPECT_EQ(trace->parent_id(), kParent);
  }
}

TEST(RequestTrace, IsKeptWhereWhoAsksKeepsIt) {
  EXPECT_THAT(RequestTrace::begin("00-" + kTrace + "-" + kParent + "-00"), IsNull());
  EXPECT_THAT(RequestTrace::begin("00-" + kTrace + "-" + kParent + "-fe"), IsNull());
}

TEST(RequestTrace, BeginsAnotherWhereTheHeaderIsNone) {
  const std::string right = "00-" + kTrace + "-" + kParent + "-01";
  std::vector<std::string> wrong = {"",
                                    "ff" + right.substr(2),
                                    right + "-more",
                                    "01" + right.substr(2) + "more",
                                    "00-" + std::string(32, '0') + "-" + kParent + "-01",
                                    "00-" + kTrace + "-" + std::string(16, '0') + "-01",
                                    std::string(55, '-')};
  for (std::size_t i = 0; i < right.size(); ++i) {
    wrong.push_back(right.substr(0, i));
    for (const char c : {'g', 'A', '\0'}) {
      wrong.push_back(right);
      wrong.back()[i] = c;
    }
  }
  for (const std::string& header : wrong) {
    const auto trace = RequestTrace::begin(header);
    EXPECT_THAT(trace->trace_id(), MatchesRegex("[0-9a-f]{32}")) << header;
    EXPECT_NE(trace->trace_id(), kTrace) << header;
    EXPECT_EQ(trace->parent_id(), "") << header;
  }
}

TEST(RequestTrace, TellsOfItsFirstSamples) {
  const auto trace = RequestTrace::begin("");
  for (int i = 0; i < 100; ++i) trace->add({.figures = {.num_output_tokens = i}});
  const auto samples = trace->samples();
  ASSERT_EQ(samples.size(), 32u);
  EXPECT_EQ(samples.back().figures.num_output_tokens, 31);
}

}  // namespace
}  // namespace pagoda
