#include "serving/answer_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMegabyte = 1 << 20;

std::shared_ptr<AnswerBudget> budget_of(std::int64_t num_megabytes) {
  return std::make_shared<AnswerBudget>(num_megabytes * kMegabyte);
}

TEST(AnswerBudget, OneAnswerMayHaveAllOfItAndNoMore) {
  HeldAnswer answer(budget_of(10));
  EXPECT_TRUE(answer.grow(10 * kMegabyte).ok());
  const Status refused = answer.grow(1);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("at most 10 MB"));
}

TEST(AnswerBudget, SmallAnswersGoOnWhereLargeOnesHaveTakenIt) {
  const auto budget = budget_of(10);
  HeldAnswer large(budget), small(budget);
  EXPECT_TRUE(large.grow(10 * kMegabyte).ok());
  EXPECT_TRUE(small.grow(kSmallAnswerBytes).ok());
  const Status refused = small.grow(1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("take 10 MB"));
}

TEST(AnswerBudget, WhatIsSentOrEndsIsGivenBack) {
  const auto budget = budget_of(10);
  std::optional<HeldAnswer> first(budget);
  HeldAnswer second(budget);
  EXPECT_TRUE(first->grow(6 * kMegabyte).ok());
  EXPECT_FALSE(second.grow(6 * kMegabyte).ok());
  first->release(3 * kMegabyte);
  EXPECT_TRUE(second.grow(6 * kMegabyte).ok());
  second.release(6 * kMegabyte);
  first.reset();
  EXPECT_TRUE(second.grow(10 * kMegabyte).ok());
}

}  // namespace
}  // namespace pagoda
