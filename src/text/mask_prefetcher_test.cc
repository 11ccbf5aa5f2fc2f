#include "text/mask_prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace pagoda {
namespace {

struct Calls {
  std::atomic<int> num_masks = 0;
  std::atomic<int> num_masks_elsewhere = 0;
};

// A source whose mask is a hash of the accepted tokens. Masks whose hash is a multiple of
// `slow_one` take the time `slow`; 0: no mask does. Stops after `length` tokens. Token 13 is
// refused, and after token 14 there is no mask.
class HashSource final : public TokenMaskSource {
 public:
  HashSource(Calls* calls, int length, unsigned slow_one = 0,
             std::chrono::microseconds slow = std::chrono::microseconds(200))
      : calls_(calls), length_(length), slow_one_(slow_one), slow_(slow) {}

  std::unique_ptr<TokenMaskSource> clone() const override {
    return std::make_unique<HashSource>(*this);
  }
  Status fill_mask(std::span<std::uint32_t> bits) override {
    ++calls_->num_masks;
    if (std::this_thread::get_id() != home_) ++calls_->num_masks_elsewhere;
    if (slow_one_ != 0 && hash_ % slow_one_ == 0) std::this_thread::sleep_for(slow_);
    for (std::size_t i = 0; i < bits.size(); ++i)
      bits[i] = hash_ * 2654435761u + static_cast<std::uint32_t>(i);
    return hash_ == 14 ? invalid_argument("no mask") : ok_status();
  }
  Status accept(int token_id) override {
    if (token_id == 13) return invalid_argument("wrong token");
    hash_ = hash_ * 31 + static_cast<std::uint32_t>(token_id);
    --length_;
    return ok_status();
  }
  bool is_stopped() const override { return length_ <= 0; }

 private:
  Calls* calls_;
  int length_;
  unsigned slow_one_;
  std::chrono::microseconds slow_;
  std::uint32_t hash_ = 0;
  std::thread::id home_ = std::this_thread::get_id();
};

std::vector<std::uint32_t> mask_of(TokenMaskSource& source, const Status& expected = ok_status()) {
  std::vector<std::uint32_t> bits(5);
  EXPECT_EQ(source.fill_mask(bits).code(), expected.code());
  return bits;
}

TEST(MaskPrefetcher, SaysWhatTheSourceSaysWhoeverComputesIt) {
  MaskPrefetcher prefetcher;
  Calls calls;
  const auto walk = [&](unsigned seed) {
    std::mt19937 random(seed);
    HashSource plain(&calls, 200);
    std::unique_ptr<TokenMaskSource> ahead =
        prefetcher.wrap(std::make_unique<HashSource>(&calls, 200, seed));
    while (!plain.is_stopped()) {
      if (random() % 4 != 0) {
        ASSERT_EQ(mask_of(*ahead), mask_of(plain));
      }
      if (random() % 3 == 0) std::this_thread::yield();
      if (random() % 16 == 0) ahead = ahead->clone();
      const int token = static_cast<int>(random() % 12);
      ASSERT_TRUE(ahead->accept(token).ok() && plain.accept(token).ok());
      ASSERT_EQ(ahead->is_stopped(), plain.is_stopped());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(walk, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(calls.num_masks_elsewhere, 0);
}

TEST(MaskPrefetcher, ComputesSlowMasksAheadOnItsOwnThread) {
  MaskPrefetcher prefetcher;
  Calls calls;
  const auto source = prefetcher.wrap(std::make_unique<HashSource>(&calls, 10, 1));
  mask_of(*source);
  EXPECT_EQ(calls.num_masks, 1);
  ASSERT_TRUE(source->accept(1).ok());
  EXPECT_TRUE(eventually([&] { return calls.num_masks == 2; }));
  mask_of(*source);
  EXPECT_EQ(calls.num_masks, 2);
  EXPECT_EQ(calls.num_masks_elsewhere, 1);
}

TEST(MaskPrefetcher, NobodyNeedWaitForVeryLongMasks) {
  MaskPrefetcher prefetcher;
  Calls calls;
  std::vector<std::unique_ptr<TokenMaskSource>> sources;
  for (int i = 0; i < 4; ++i) {
    sources.push_back(prefetcher.wrap(
        std::make_unique<HashSource>(&calls, 10, 1, std::chrono::milliseconds(200))));
    EXPECT_TRUE(sources[i]->is_mask_near()) << "nothing is known of it";
    mask_of(*sources[i]);
    ASSERT_TRUE(sources[i]->accept(1).ok());
    EXPECT_FALSE(sources[i]->is_mask_near());
    EXPECT_FALSE(sources[i]->wait_for_mask({}));
  }
  for (const auto& source : sources) {
    EXPECT_TRUE(source->wait_for_mask(Clock::TimePoint::max()));
    EXPECT_TRUE(source->is_mask_near());
    mask_of(*source);
  }
  EXPECT_EQ(calls.num_masks, 8);
  EXPECT_EQ(calls.num_masks_elsewhere, 4);
  // No token has been accepted since the last mask, so nothing has been computed ahead.
  EXPECT_FALSE(sources[0]->wait_for_mask({}));
  EXPECT_TRUE(eventually([&] { return sources[0]->wait_for_mask({}); }));
}

TEST(MaskPrefetcher, LeavesQuickMasksToTheirCaller) {
  MaskPrefetcher prefetcher;
  Calls calls;
  const auto source = prefetcher.wrap(std::make_unique<HashSource>(&calls, 1000));
  for (int token = 0; token < 10; ++token) {
    mask_of(*source);
    ASSERT_TRUE(source->accept(token).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_LT(calls.num_masks_elsewhere, 5);  // on a busy machine some masks are slow
}

TEST(MaskPrefetcher, ErrorsArriveWhereTheyWouldWithoutIt) {
  MaskPrefetcher prefetcher;
  Calls calls;
  const auto source = prefetcher.wrap(std::make_unique<HashSource>(&calls, 10, 1));
  mask_of(*source);
  EXPECT_EQ(source->accept(13).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(source->accept(14).ok());
  mask_of(*source, invalid_argument("no mask"));
}

TEST(MaskPrefetcher, SourcesOutliveIt) {
  Calls calls;
  std::unique_ptr<TokenMaskSource> source;
  {
    MaskPrefetcher prefetcher;
    source = prefetcher.wrap(std::make_unique<HashSource>(&calls, 10, 1));
    mask_of(*source);
    ASSERT_TRUE(source->accept(1).ok());
  }
  mask_of(*source);
  ASSERT_TRUE(source->accept(2).ok());
  mask_of(*source);
}

}  // namespace
}  // namespace pagoda
