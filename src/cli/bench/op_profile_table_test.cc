#include "cli/bench/op_profile_table.h"

#include <gmock/gmock.h>

#include "core/json.h"
#include "tensor/op_profile.h"

namespace pagoda {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr MachineLimits kLimits = {
    .num_threads = 2, .read_gb_per_s = 40, .float32_gmac_per_s = 100, .bf16_gmac_per_s = 200};

// Adds a decode step. The test knows all of its times except the time outside its ops.
void add_decode_step(OpProfile& profile) {
  profile.begin_step(StepPhase::kDecode);
  profile.add({.op = "linear",
               .format = "Q4_1",
               .rows = 960,
               .cols = 576,
               .read_bytes = 2e6,
               .products = 1e6},
              1e-4);
  profile.add({.op = "rope", .read_bytes = 1e3}, 2e-5);
  profile.end_step();
}

TEST(OpProfileTable, NamesOpsByTheirWeightsAndGivesShares) {
  OpProfile profile;
  add_decode_step(profile);
  const std::string table = op_profile_table(profile, kLimits);
  EXPECT_THAT(table, HasSubstr("decode: 1 steps"));
  EXPECT_THAT(table, Not(HasSubstr("prefill")));
  // 2 MB in 0.1 ms are 20 GB/s, half of the limit; 1e6 products are 10 GMAC/s, a twentieth.
  EXPECT_THAT(table, ContainsRegex("linear 960 x 576 Q4_1 +1 +0.10 +[0-9.]+ % +2.00 +20.00 +50 %"
                                   " +10.0 +5 %"));
  EXPECT_THAT(table, ContainsRegex("rope +1 +0.02"));
  EXPECT_THAT(table, ContainsRegex("outside ops +1 "));
}

TEST(OpProfileTable, IsEmptyWithoutASingleStep) {
  EXPECT_EQ(op_profile_table(OpProfile(), kLimits), "");
  EXPECT_TRUE(op_profile_json(OpProfile(), kLimits).empty());
}

TEST(OpProfileTable, JsonHasARowAnOpAndPhase) {
  OpProfile profile;
  add_decode_step(profile);
  const auto rows = op_profile_json(profile, kLimits);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["op"], "linear");
  EXPECT_EQ(rows[0]["phase"], "decode");
  EXPECT_EQ(rows[0]["rows"], 960);
  EXPECT_DOUBLE_EQ(rows[0]["read_share"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(rows[0]["gmac_per_s"].get<double>(), 10);
  EXPECT_FALSE(rows[1].contains("gmac_per_s"));
  EXPECT_FALSE(rows[1].contains("format"));
  EXPECT_EQ(rows[2]["op"], "outside ops");
}

}  // namespace
}  // namespace pagoda
