#include "draw/row_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "draw/token_weight.h"

namespace pagoda::cpu {
namespace {

// Returns the token that is drawn after top-p, found by sorting the row.
int draw_by_sort(const std::vector<float>& logits, float inverse_temperature, float top_p,
                 std::int64_t fraction) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  const float max = logits[ids[0]];
  const auto weight = [&](int id) { return token_weight(logits[id], max, inverse_temperature); };
  std::int64_t total = 0;
  for (const int id : ids) total += weight(id);
  const std::int64_t target = std::max<std::int64_t>(1, share_of(total, fraction_of(top_p)));
  std::int64_t reached = 0;
  std::size_t size = 0;
  while (reached < target) reached += weight(ids[size++]);
  ids.resize(size);
  std::sort(ids.begin(), ids.end());
  std::int64_t left = share_of(reached, fraction);
  for (const int id : ids) {
    left -= weight(id);
    if (left < 0) return id;
  }
  return -1;
}

// Returns a row of which top-p keeps thousands of tokens: flat, full of ties, sorted, or with most
// of the weight on few tokens. Kind 3 misleads the sample, which sees only logits of -20.
std::vector<float> wide_row(int kind, int size, std::mt19937& random) {
  std::normal_distribution<float> normal(0, kind == 0 ? 0.3f : kind == 5 ? 2.0f : 1.0f);
  std::vector<float> row(size);
  for (float& x : row) x = kind == 1 ? std::round(normal(random) * 4) / 4 : normal(random);
  if (kind == 2) std::sort(row.begin(), row.end());
  if (kind == 3) {
    for (int i = 0; i < size; i += size / 1024) row[i] = -20;
  }
  if (kind == 4) row.assign(size, 1.5f);
  return row;
}

TEST(RowSampler, KeepsOfAWideRowWhatASortKeeps) {
  constexpr unsigned kSeed = 20260201;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (const int size : {20000, 32768, 50001}) {
    std::vector<std::int32_t> memory(RowSampler::num_words(size));
    RowSampler sampler(size, memory);
    for (int kind = 0; kind < 6; ++kind) {
      const std::vector<float> row = wide_row(kind, size, random);
      for (const float top_p : {0.3f, 0.9f, 0.999f, 0.99999f}) {
        const std::int64_t fraction =
            static_cast<std::int64_t>(random()) << 30 | static_cast<std::int64_t>(random() >> 2);
        ASSERT_EQ(sampler.scan(row), 0);
        EXPECT_EQ(sampler.draw(0.8f, {.top_p = top_p}, fraction),
                  draw_by_sort(row, 0.8f, top_p, fraction))
            << size << " tokens of kind " << kind << ", top-p " << top_p;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::cpu
