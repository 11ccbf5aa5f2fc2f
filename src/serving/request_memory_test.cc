#include "serving/request_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMegabyte = 1 << 20;

std::shared_ptr<RequestMemory> budget_of(std::int64_t num_megabytes) {
  return std::make_shared<RequestMemory>(num_megabytes * kMegabyte);
}

std::shared_ptr<MemoryAccount> answer_of(const std::shared_ptr<RequestMemory>& budget) {
  return std::make_shared<MemoryAccount>(budget);
}

TEST(RequestMemory, OneAnswerMayHaveAllOfItAndNoMore) {
  HeldBytes answer(answer_of(budget_of(10)));
  EXPECT_TRUE(answer.grow(10 * kMegabyte).ok());
  const Status refused = answer.grow(1);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("at most 10 MB"));
}

TEST(RequestMemory, SmallAnswersGoOnWhereLargeOnesHaveTakenIt) {
  const auto budget = budget_of(10);
  HeldBytes large(answer_of(budget)), small(answer_of(budget));
  EXPECT_TRUE(large.grow(10 * kMegabyte).ok());
  EXPECT_TRUE(small.grow(kSmallAccountBytes).ok());
  const Status refused = small.grow(1);
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("take 10 MB"));
}

TEST(RequestMemory, WhatIsSentOrEndsIsGivenBack) {
  const auto budget = budget_of(10);
  std::optional<HeldBytes> first(answer_of(budget));
  HeldBytes second(answer_of(budget));
  EXPECT_TRUE(first->grow(6 * kMegabyte).ok());
  EXPECT_FALSE(second.grow(6 * kMegabyte).ok());
  EXPECT_TRUE(first->resize(3 * kMegabyte).ok());
  EXPECT_TRUE(second.grow(6 * kMegabyte).ok());
  second.release(6 * kMegabyte);
  first.reset();
  EXPECT_TRUE(second.resize(10 * kMegabyte).ok());
  EXPECT_FALSE(second.resize(11 * kMegabyte).ok());
}

TEST(RequestMemory, AllPartsOfAnAnswerAreOneAnswer) {
  const auto answer = answer_of(budget_of(10));
  HeldBytes first(answer), second(answer);
  EXPECT_TRUE(first.grow(6 * kMegabyte).ok());
  EXPECT_EQ(second.grow(6 * kMegabyte).code(), StatusCode::kInvalidArgument);
  HeldBytes moved = std::move(first);
  EXPECT_FALSE(second.grow(6 * kMegabyte).ok());
  moved.release(6 * kMegabyte);
  EXPECT_TRUE(second.grow(6 * kMegabyte).ok());
}

TEST(RequestMemory, ATextCountsOnceAsLongAsAnybodyHasIt) {
  const auto budget = budget_of(10);
  HeldBytes others(answer_of(budget));
  auto text = HeldText::make(answer_of(budget), std::string(6 * kMegabyte, 'a'));
  ASSERT_TRUE(text.ok());
  SharedText first = *text;
  text = first;
  EXPECT_TRUE(others.grow(4 * kMegabyte).ok());
  EXPECT_FALSE(others.grow(kMegabyte).ok());
  first.reset();
  EXPECT_FALSE(others.grow(kMegabyte).ok());
  text = HeldText::for_good("a");
  EXPECT_TRUE(others.grow(6 * kMegabyte).ok());
}

TEST(RequestMemory, ASmallTextHasRoomWhateverTheRequestHolds) {
  const auto answer = answer_of(budget_of(1));
  HeldBytes all(answer);
  ASSERT_TRUE(all.grow(kMegabyte).ok());
  EXPECT_TRUE(HeldText::make(answer, std::string(kSmallTextBytes, 'a')).ok());
  EXPECT_FALSE(HeldText::make(answer, std::string(kSmallTextBytes + 1, 'a')).ok());
}

}  // namespace
}  // namespace pagoda
