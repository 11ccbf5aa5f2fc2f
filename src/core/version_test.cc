#include "core/version.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(VersionTest, SaysItsCommitWhereItIsKnown) {
  const std::string commit(pagoda::commit());
  EXPECT_EQ(commit.find_first_not_of("0123456789abcdef"), std::string::npos) << commit;
  EXPECT_TRUE(commit.empty() || commit.size() == 12) << commit;
  const std::string expected =
      commit.empty() ? std::string(version()) : std::string(version()) + " (" + commit + ")";
  EXPECT_EQ(version_and_commit(), expected);
}

}  // namespace
}  // namespace pagoda
