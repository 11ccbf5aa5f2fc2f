// cpu's kv_write of codes has the codec's bits on every instruction set of this machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "backend/backend.h"
#include "backend/cpu/cpu_exec.h"
#include "ops/kv_case.h"
#include "ops/kv_write/kv_write.h"
#include "ops/op_case.h"

namespace pagoda {
namespace {

constexpr std::uint32_t kKvWriteCodesSeed = 20241124;
constexpr int kTokens = 24, kBlockSize = 5, kNumBlocks = 5, kHeads = 3;

// Returns entries of every kind: random ones, zeros, one outlier, numbers that count as 0, and
// numbers that are not finite.
std::vector<float> random_entries(std::mt19937& random, std::int64_t head_dim) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float odd[] = {std::nanf(""), infinity, -infinity, 3e38f,   -3e38f,
                       0.0f,          -0.0f,    0x1p-60f,  0x1p-61f};
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> entries(kTokens * kHeads * head_dim);
  for (std::int64_t i = 0; i < kTokens * kHeads; ++i) {
    const float magnitude = std::ldexp(1.0f, static_cast<int>(random() % 80) - 60);
    const auto kind = random() % 5;
    float* const entry = entries.data() + i * head_dim;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      entry[d] = kind == 0 ? odd[5 + random() % 4] : normal(random) * magnitude;
    }
    if (kind == 1) entry[random() % head_dim] *= 1000;
    if (kind == 2) entry[random() % head_dim] = odd[random() % 9];
    if (kind == 3 && i % 2) std::fill_n(entry, head_dim, entry[0]);
  }
  return entries;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  const std::size_t bytes = a.num_elements() * dtype_size(a.dtype());
  return a.shape() == b.shape() && std::memcmp(a.first_byte(), b.first_byte(), bytes) == 0;
}

class KvWriteCodes : public ::testing::TestWithParam<CpuIsa> {};

TEST_P(KvWriteCodes, AreTheCodecs) {
  std::mt19937 random(kKvWriteCodesSeed);
  const auto exec =
      make_exec({.backend = Backend::kCpu, .num_threads = 2, .cpu_isa = GetParam()}).value();
  std::vector<int> places(kTokens);
  std::iota(places.begin(), places.end(), 0);
  const HostBatch host = write_batch(places, places);
  for (std::int64_t head_dim = 1; head_dim <= 256; ++head_dim) {
    const Shape cache = {kNumBlocks, kBlockSize, kHeads, head_dim};
    for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
      if (!fits(format, head_dim)) continue;
      SCOPED_TRACE(fmt::format("{} of {}", kv_format_name(format), head_dim));
      std::vector<float> entries = random_entries(random, head_dim);
      const Tensor x = exec->upload<float>(entries, {kTokens, kHeads, head_dim});
      const KvView view = allocate_kv_view(*exec, both(format), cache).value();
      const KvView written = kv_write(*exec, view, x, x, upload(*exec, host));
      entries.resize(cache.num_elements());  // slots that no token writes stay zero
      const KvEntries expected = upload_kv_entries(*exec, format, entries, cache);
      ASSERT_TRUE(same_bytes(written.keys.elements, expected.elements));
      ASSERT_TRUE(same_bytes(written.keys.scales, expected.scales));
      ASSERT_TRUE(same_bytes(written.values.elements, expected.elements));
      ASSERT_TRUE(same_bytes(written.values.scales, expected.scales));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KvWriteCodes, ::testing::ValuesIn(supported_cpu_isas()),
                         [](const auto& info) { return std::string(cpu_isa_name(info.param)); });

}  // namespace
}  // namespace pagoda
