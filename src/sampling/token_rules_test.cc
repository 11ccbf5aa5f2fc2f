#include "sampling/token_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kBanned = -std::numeric_limits<float>::infinity();

std::vector<float> after(const TokenRules& rules, const std::vector<int>& output) {
  std::vector<float> logits = {1, 2, 3, 4, 5};
  add_logit_bias(rules, logits);
  ban_tokens(rules, output, logits);
  return logits;
}

TEST(TokenRules, AddBiases) {
  EXPECT_THAT(after({.logit_bias = {{1, 100}, {3, -0.5f}, {4, kBanned}}}, {}),
              ElementsAre(1, 102, 3, 3.5f, kBanned));
}

TEST(TokenRules, AllowOnly) {
  EXPECT_THAT(after({.allowed_tokens = mask_of(std::vector<int>{1, 3}, 5)}, {}),
              ElementsAre(kBanned, 2, kBanned, 4, kBanned));
  EXPECT_THAT(after({.allowed_tokens = {0b11111}}, {}), ElementsAre(1, 2, 3, 4, 5));
  // A bias does not undo a ban.
  EXPECT_THAT(after({.logit_bias = {{0, 100}}, .allowed_tokens = {0b10000}}, {}),
              ElementsAre(kBanned, kBanned, kBanned, kBanned, 5));
}

TEST(TokenRules, ABadWordIsBannedWhereItWouldEnd) {
  const TokenRules rules = {.bad_words = {{2}, {0, 1}, {4, 4, 3}}};
  EXPECT_THAT(after(rules, {}), ElementsAre(1, 2, kBanned, 4, 5));
  EXPECT_THAT(after(rules, {0}), ElementsAre(1, kBanned, kBanned, 4, 5));
  EXPECT_THAT(after(rules, {4}), ElementsAre(1, 2, kBanned, 4, 5));
  EXPECT_THAT(after(rules, {4, 4}), ElementsAre(1, 2, kBanned, kBanned, 5));
  EXPECT_THAT(after(rules, {4, 4, 0}), ElementsAre(1, kBanned, kBanned, 4, 5));
}

// Full words of a mask are banned by vectors, the ids of a last partial word one by one.
TEST(TokenRules, AMaskBansWhatItLeavesOut) {
  constexpr unsigned kSeed = 20261124;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (const int vocab_size : {1, 31, 32, 33, 64, 95, 96, 1000}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> logits, expected;
      std::vector<int> allowed;
      for (int id = 0; id < vocab_size; ++id) {
        // NaN and infinities can be banned too; allowed logits keep their bits.
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        const bool is_allowed = random() % 20 < static_cast<unsigned>(round) + 1;
        logits.push_back(value);
        expected.push_back(is_allowed ? value : kBanned);
        if (is_allowed) allowed.push_back(id);
      }
      std::vector<std::uint32_t> mask = mask_of(allowed, vocab_size);
      // Bits beyond the vocabulary are ignored.
      if (vocab_size % 32 != 0) mask.back() |= ~0u << vocab_size % 32;
      ban_unset(mask, logits);
      EXPECT_EQ(std::memcmp(logits.data(), expected.data(), 4 * logits.size()), 0)
          << vocab_size << " tokens, round " << round;
    }
  }
}

TEST(TokenRules, ErrorsNameFieldRangeAndValue) {
  const auto error_of = [](const TokenRules& rules) { return validate(rules, 5).message(); };
  EXPECT_EQ(error_of({}), "");
  EXPECT_EQ(error_of({.logit_bias = {{0, 100}, {4, -100}, {1, kBanned}},
                      .allowed_tokens = {0b10001},
                      .bad_words = {{0, 4}},
                      .dry_sequence_breakers = {0, 4}}),
            "");
  EXPECT_EQ(error_of({.logit_bias = {{5, 0}}}),
            "[sampling] logit_bias: expected an integer of [0, 4], got 5");
  EXPECT_EQ(error_of({.logit_bias = {{0, 100.5f}}}),
            "[sampling] logit_bias: expected numbers of [-100, 100], got 100.5");
  EXPECT_THAT(error_of({.logit_bias = {{0, -kBanned}}}), HasSubstr("got inf"));
  EXPECT_THAT(error_of({.logit_bias = {{0, std::numeric_limits<float>::quiet_NaN()}}}),
              HasSubstr("got nan"));
  EXPECT_EQ(error_of({.allowed_tokens = {0b10001, 0}}),
            "[sampling] allowed_tokens: expected a mask of 1 words, got 2");
  EXPECT_EQ(error_of({.dry_sequence_breakers = {3, 3}}),
            "[sampling] dry_sequence_breakers: expected ascending ids, got 3 after 3");
  EXPECT_THAT(error_of({.bad_words = {{}}}), HasSubstr("bad_words: expected tokens, got none"));
  EXPECT_THAT(error_of({.bad_words = {{1, 5}}}), HasSubstr("bad_words: expected an integer"));
  EXPECT_THAT(error_of({.bad_words = std::vector<std::vector<int>>(kMaxBadWords + 1, {1})}),
              HasSubstr("bad_words: expected at most 2048, got 2049"));
  EXPECT_THAT(error_of({.bad_words = {std::vector<int>(kMaxBadWordTokens + 1, 1)}}),
              HasSubstr("expected at most 65536 tokens together"));
  EXPECT_THAT(error_of({.dry_sequence_breakers = {9}}), HasSubstr("dry_sequence_breakers"));
}

}  // namespace
}  // namespace pagoda
