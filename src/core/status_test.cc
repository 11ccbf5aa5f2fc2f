#include "core/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace pagoda {
namespace {

TEST(Status, IsOkUnlessMadeFromAFailure) {
  EXPECT_TRUE(ok_status().ok());
  const Status failed = not_found("no model at {}", "a/b");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.code(), StatusCode::kNotFound);
  EXPECT_EQ(failed.message(), "no model at a/b");
}

TEST(Status, EveryMakerSetsItsOwnCode) {
  EXPECT_EQ(invalid_argument("x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(unsupported("x").code(), StatusCode::kUnsupported);
  EXPECT_EQ(data_loss("x").code(), StatusCode::kDataLoss);
  EXPECT_EQ(resource_exhausted("x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(unavailable("x").code(), StatusCode::kUnavailable);
  EXPECT_EQ(cancelled("x").code(), StatusCode::kCancelled);
  EXPECT_EQ(internal_error("x").code(), StatusCode::kInternal);
}

TEST(Status, ContextIsPutInFrontOfAFailureOnly) {
  const Status status = data_loss("[gguf] cut short").with_context("loading m.gguf");
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "loading m.gguf: [gguf] cut short");
  EXPECT_TRUE(ok_status().with_context("loading").ok());
}

TEST(Status, AFailureKeepsItsFieldAndReason) {
  const Status status = invalid_argument("too long").of_field("prompt", "too_long");
  EXPECT_EQ(status.with_context("line 3").field(), "prompt");
  EXPECT_EQ(status.with_context("line 3").reason(), "too_long");
  EXPECT_EQ(status.message(), "too long");
  EXPECT_TRUE(ok_status().of_field("prompt").ok());
  EXPECT_EQ(ok_status().of_field("prompt").field(), "");
}

Result<int> half_of(int number) {
  if (number % 2 != 0) return invalid_argument("expected an even number, got {}", number);
  return number / 2;
}

Result<int> quarter_of(int number) {
  PAGODA_ASSIGN_OR_RETURN(const int half, half_of(number));
  PAGODA_ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Status check_quarter(int number) {
  PAGODA_RETURN_IF_ERROR(quarter_of(number).status());
  return ok_status();
}

TEST(Result, HoldsAValueOrTheReasonForNone) {
  EXPECT_EQ(half_of(8).value(), 4);
  EXPECT_TRUE(half_of(8).status().ok());
  EXPECT_FALSE(half_of(7).ok());
  EXPECT_EQ(half_of(7).status().message(), "expected an even number, got 7");
}

TEST(Result, TheMacrosPassTheFirstFailureOn) {
  EXPECT_EQ(*quarter_of(12), 3);
  EXPECT_EQ(quarter_of(6).status().message(), "expected an even number, got 3");
  EXPECT_TRUE(check_quarter(12).ok());
  EXPECT_EQ(check_quarter(7).message(), "expected an even number, got 7");
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeath, ReadingAFailedResultIsOurOwnMistake) {
  EXPECT_DEATH(half_of(7).value(), "expected an even number, got 7");
  EXPECT_DEATH(static_cast<void>(Result<int>{ok_status()}), "has no value");
}

}  // namespace
}  // namespace pagoda
