// Promises of MLX's cache beyond the op's contract: it is written in place and in order, also with
// steps in flight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <mlx/stream.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "backend/backend.h"
#include "backend/gpu/gpu_op.h"
#include "ops/attention/attention.h"
#include "ops/kv_case.h"
#include "ops/kv_write/kv_write.h"
#include "ops/op_case.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "quant/kv_entry.h"

namespace pagoda {
namespace {

namespace mx = ::mlx::core;

using ::testing::HasSubstr;

constexpr int kNumBlocks = 4;
constexpr int kBlockSize = 8;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 16;
constexpr int kWidth = kKvHeads * kHeadDim;
const Shape kCacheShape{kNumBlocks, kBlockSize, kKvHeads, kHeadDim};

std::unique_ptr<Exec> make_mlx_exec() {
  return make_exec({.backend = Backend::kMlx, .num_threads = 1}).value();
}

KvView make_view(Exec& exec, KvFormat format) {
  return allocate_kv_view(exec, {format, format}, kCacheShape).value();
}

// One sequence whose tokens fill the blocks 2, 0, 3, 1.
struct Sequence {
  HostBatch host;
  int length = 0;

  // Returns the batch of the next `count` tokens.
  const HostBatch& advance(int count) {
    static constexpr int kBlocks[] = {2, 0, 3, 1};
    host.clear();
    for (int position = length; position < length + count; ++position) {
      host.token_ids.push_back(position);
      host.positions.push_back(position);
      host.slot_mapping.push_back(kBlocks[position / kBlockSize] * kBlockSize +
                                  position % kBlockSize);
    }
    length += count;
    host.query_start = {0, count};
    host.context_lens = {length};
    host.block_tables.assign(std::begin(kBlocks), std::end(kBlocks));
    host.max_blocks = kNumBlocks;
    host.num_decodes = count == 1 ? 1 : 0;
    return host;
  }
};

// Returns entries whose elements encode their position, whether they are keys or values (the sign),
// and their index.
std::vector<float> rows_of(const HostBatch& host, float sign) {
  std::vector<float> rows;
  for (const std::int32_t position : host.positions) {
    for (int i = 0; i < kWidth; ++i) rows.push_back(sign * (position + 1) + 0.0625f * i);
  }
  return rows;
}

KvView write_step(Exec& exec, const KvView& view, const HostBatch& host) {
  const StepBatch batch = upload(exec, host);
  const Shape shape{host.num_tokens(), kKvHeads, kHeadDim};
  return kv_write(exec, view, exec.upload<float>(rows_of(host, 1), shape),
                  exec.upload<float>(rows_of(host, -1), shape), batch);
}

Status evaluate(Exec& exec, const KvView& view) {
  const Tensor roots[] = {view.keys.elements, view.values.elements};
  return exec.evaluate(roots);
}

float element(std::span<const std::byte> bytes, DType dtype, std::size_t i) {
  const auto at = [&]<typename T>(T value) {
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return to_float(value);
  };
  if (dtype == DType::kBFloat16) return at(bf16{});
  if (dtype == DType::kFloat16) return at(f16{});
  return at(0.0f);
}

float rounded(float x, DType dtype) {
  if (dtype == DType::kBFloat16) return to_float(to_bf16(x));
  if (dtype == DType::kFloat16) return to_float(to_f16(x));
  return x;
}

class KvWriteMlxTest : public ::testing::TestWithParam<KvFormat> {};

// The empty view stays alive, yet the write copies nothing.
TEST_P(KvWriteMlxTest, AStepThatSamplesNothingStoresItsEntriesInPlace) {
  const DType dtype = traits_of(GetParam()).dtype;
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  const KvView empty = make_view(exec, GetParam());
  const std::byte* address = exec.read(empty.keys.elements)->data();
  Sequence sequence;
  const HostBatch& host = sequence.advance(11);
  const KvView view = write_step(exec, empty, host);
  ASSERT_TRUE(evaluate(exec, view).ok());
  EXPECT_EQ(exec.counters().num_evaluations, 1u);
  const auto keys = exec.read(view.keys.elements);
  const auto values = exec.read(view.values.elements);
  ASSERT_TRUE(keys.ok() && values.ok());
  EXPECT_EQ(keys->data(), address);
  std::vector<float> expected(kCacheShape.num_elements(), 0.0f);
  const std::vector<float> rows = rows_of(host, 1);
  for (int t = 0; t < host.num_tokens(); ++t) {
    for (int i = 0; i < kWidth; ++i)
      expected[host.slot_mapping[t] * kWidth + i] = rounded(rows[t * kWidth + i], dtype);
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(element(*keys, dtype, i), expected[i]) << i;
  EXPECT_EQ(element(*values, dtype, host.slot_mapping[10] * kWidth), -11.0f);
  EXPECT_EQ(exec.counters().num_evaluations, 1u);
}

TEST_P(KvWriteMlxTest, PaddingWritesNothing) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  Sequence sequence;
  sequence.advance(3);
  sequence.host.slot_mapping = {-1, 5, -1};
  const KvView view = write_step(exec, make_view(exec, GetParam()), sequence.host);
  const auto keys = exec.read(view.keys.elements);
  ASSERT_TRUE(keys.ok());
  for (int slot = 0; slot < kNumBlocks * kBlockSize; ++slot) {
    EXPECT_EQ(element(*keys, traits_of(GetParam()).dtype, slot * kWidth), slot == 5 ? 2.0f : 0.0f)
        << slot;
  }
}

TEST_P(KvWriteMlxTest, ReadsStridedPartsOfAJoinedProduct) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  Sequence sequence;
  const HostBatch& host = sequence.advance(2);
  std::vector<float> joined(2 * 3 * kWidth, 99.0f);
  for (int t = 0; t < 2; ++t) {
    for (int i = 0; i < kWidth; ++i) joined[(t * 3 + 1) * kWidth + i] = 10.0f * t + i;
  }
  const Tensor product = exec.upload<float>(joined, {2, 3 * kWidth});
  const Tensor k = product.slice(1, kWidth, 2 * kWidth).split_last(kKvHeads, kHeadDim);
  const KvView view = kv_write(exec, make_view(exec, GetParam()), k, k, upload(exec, host));
  const auto values = exec.read(view.values.elements);
  ASSERT_TRUE(values.ok());
  for (int i = 0; i < kWidth; ++i) {
    EXPECT_EQ(element(*values, traits_of(GetParam()).dtype, (host.slot_mapping[1]) * kWidth + i),
              10.0f + i);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, KvWriteMlxTest,
                         ::testing::Values(KvFormat::kFloat32, KvFormat::kBFloat16,
                                           KvFormat::kFloat16),
                         [](const auto& info) { return std::string(kv_format_name(info.param)); });

// Returns entries whose codes would differ with another rounding, order of sums or range: one of
// every kind, then random ones. Numbers below 2^-60 count as 0.
std::vector<float> entries_of_all_kinds(std::int64_t head_dim, std::int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> entries = random_values(7, head_dim * count);
  std::mt19937 random(3);
  const auto set = [&](std::int64_t entry, auto&& value_of) {
    for (std::int64_t d = 0; d < head_dim; ++d) entries[entry * head_dim + d] = value_of(d);
  };
  set(0, [](auto) { return -0.0f; });
  set(1, [](auto d) { return d == 1 ? 3e4f : 1e-3f; });
  set(2, [](auto) { return -1.5f; });
  set(3, [](auto d) { return d % 2 == 0 ? 3e38f : -2.9e38f; });
  set(4, [](auto d) { return d % 3 == 0 ? 0x1.fp-61f : 0x1p-60f; });
  set(5, [](auto d) { return d == 0 ? 0x1p-140f : 0x1p-130f; });
  set(6, [&](auto) { return std::ldexp(1.0f, static_cast<int>(random() % 120) - 60); });
  for (const auto& [entry, bad] : {std::pair{7, std::nanf("")}, {8, kInfinity}, {9, -kInfinity}})
    entries[entry * head_dim + random() % head_dim] = bad;
  return entries;
}

// Fails if codes or scales are not those of the codec.
void expect_codes(Exec& exec, const KvEntries& cache, std::span<const float> entries,
                  std::span<const std::int32_t> slots) {
  const KvFormatTraits traits = traits_of(cache.format);
  const std::int64_t block_size = cache.elements.extent(1), heads = cache.elements.extent(2);
  const std::int64_t head_dim = cache.head_dim(), bytes = cache.entry_bytes();
  const auto elements = exec.read(cache.elements);
  const auto scales = exec.read(cache.scales);
  ASSERT_TRUE(elements.ok() && scales.ok());
  std::vector<std::byte> codes(bytes);
  for (std::int64_t i = 0; i < std::ssize(slots) * heads; ++i) {
    const std::int64_t slot = slots[i / heads], head = i % heads;
    std::vector<float> entry(entries.begin() + i * head_dim, entries.begin() + (i + 1) * head_dim);
    bf16 expected[2] = {};
    encode_kv_entry(cache.format, entry, codes.data(), expected);
    EXPECT_EQ(std::memcmp(elements->data() + (slot * heads + head) * bytes, codes.data(), bytes), 0)
        << traits.name << " of " << head_dim << ", entry " << i;
    for (std::int64_t s = 0; s < traits.num_scales; ++s) {
      const std::int64_t run = (slot / block_size * heads + head) * traits.num_scales + s;
      std::uint16_t scale = 0;
      std::memcpy(&scale, scales->data() + (run * block_size + slot % block_size) * 2, 2);
      EXPECT_EQ(scale, expected[s].bits) << traits.name << " of " << head_dim << ", entry " << i;
    }
  }
}

TEST(MlxCacheTest, CodesAreTheCodecs) {
  constexpr int kHeads = 2, kTokens = 10;
  for (const std::int64_t head_dim : {2, 6, 24, 64, 80, 96, 128, 192, 256}) {
    const auto made = make_mlx_exec();
    Exec& exec = *made;
    const KvView empty = allocate_kv_view(exec, {KvFormat::kInt8, KvFormat::kInt4},
                                          {kNumBlocks, kBlockSize, kHeads, head_dim})
                             .value();
    Sequence sequence;
    const StepBatch batch = upload(exec, sequence.advance(kTokens));
    const std::vector<float> entries = entries_of_all_kinds(head_dim, kTokens * kHeads);
    const Tensor kv = exec.upload<float>(entries, {kTokens, kHeads, head_dim});
    const KvView view = kv_write(exec, empty, kv, kv, batch);
    expect_codes(exec, view.keys, entries, sequence.host.slot_mapping);
    expect_codes(exec, view.values, entries, sequence.host.slot_mapping);
  }
}

// A write outside the cache is dropped; on the host it is an error, too.
TEST(MlxCacheTest, ASlotOutsideTheCacheIsAnError) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  Sequence sequence;
  sequence.advance(1);
  sequence.host.slot_mapping = {kNumBlocks * kBlockSize};
  const KvView view = write_step(exec, make_view(exec, KvFormat::kFloat32), sequence.host);
  const Status handed_over = evaluate(exec, view);
  const auto keys = exec.read(view.keys.elements);
  const auto values = exec.read(view.values.elements);
  if (gpu::uses_kernels(exec)) {
    ASSERT_TRUE(handed_over.ok() && keys.ok());
    EXPECT_EQ(element(*keys, DType::kFloat32, kCacheShape.num_elements() - 1), 0.0f);
    return;
  }
  EXPECT_THAT(handed_over.message() + keys.status().message() + values.status().message(),
              HasSubstr("expected a slot below 32, got 32"));
}

// One op, rope_kv_write, writes to the cache in place. The angles are those of position 0, which
// rotate nothing.
TEST(MlxCacheTest, TheJoinedProductsKeysAndValuesAreStoredInPlace) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  const KvView empty = make_view(exec, KvFormat::kFloat32);
  const std::byte* address = exec.read(empty.values.elements)->data();
  Sequence sequence;
  const HostBatch& host = sequence.advance(3);
  std::vector<float> joined(3 * 4 * kWidth);  // q has twice as many heads as k and v
  for (std::size_t i = 0; i < joined.size(); ++i) joined[i] = static_cast<float>(i);
  std::vector<float> angles(3 * kHeadDim, 0.0f);
  for (int i = 0; i < 3 * kHeadDim; ++i) angles[i] = i / (kHeadDim / 2) % 2 == 0 ? 1.0f : 0.0f;
  const RopeKvWriteResult result =
      rope_kv_write(exec, exec.upload<float>(joined, {3, 4 * kWidth}), {}, {},
                    exec.upload<float>(angles, {3, 2, kHeadDim / 2}), empty, upload(exec, host),
                    {.num_heads = 2 * kKvHeads, .norm = {}, .rope = {}});
  ASSERT_TRUE(evaluate(exec, result.view).ok());
  const auto q = exec.read(result.q);
  const auto keys = exec.read(result.view.keys.elements);
  const auto values = exec.read(result.view.values.elements);
  ASSERT_TRUE(q.ok() && keys.ok() && values.ok());
  EXPECT_EQ(values->data(), address);
  EXPECT_EQ(exec.counters().num_evaluations, 1u);
  for (int t = 0; t < 3; ++t) {
    const int slot = host.slot_mapping[t];
    for (int i = 0; i < kWidth; ++i) {
      const float* const row = joined.data() + t * 4 * kWidth;
      EXPECT_EQ(element(*q, DType::kFloat32, 2 * t * kWidth + i), row[i]);
      EXPECT_EQ(element(*keys, DType::kFloat32, slot * kWidth + i), row[2 * kWidth + i]);
      EXPECT_EQ(element(*values, DType::kFloat32, slot * kWidth + i), row[3 * kWidth + i]);
    }
  }
}

// Returns the attention of a query of zeros, which weighs all keys alike: the mean of the values.
float mean_of_positions(int count, int channel) {
  return -(count + 1) / 2.0f + 0.0625f * channel;
}

TEST(MlxCacheTest, StepsInFlightReadTheirOwnEntries) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  KvView view = make_view(exec, KvFormat::kFloat32);
  Sequence sequence;
  std::vector<Tensor> outputs;
  std::vector<HostBatch> hosts;
  hosts.reserve(kNumBlocks * kBlockSize);
  // The host builds and submits each step without waiting for the one before.
  while (sequence.length < kNumBlocks * kBlockSize) {
    const HostBatch& host = hosts.emplace_back(sequence.advance(1));
    view = write_step(exec, view, host);
    const Tensor q =
        exec.upload<float>(std::vector<float>(2 * kWidth, 0.0f), {1, 2 * kKvHeads, kHeadDim});
    outputs.push_back(attention(exec, q, view, upload(exec, host), {.scale = 1.0f, .sinks = {}}));
    const Tensor roots[] = {outputs.back(), view.keys.elements, view.values.elements};
    ASSERT_TRUE(exec.evaluate(roots).ok());
  }
  EXPECT_EQ(exec.counters().num_evaluations, outputs.size());
  for (std::size_t step = 0; step < outputs.size(); ++step) {
    const auto bytes = exec.read(outputs[step]);
    ASSERT_TRUE(bytes.ok());
    const int count = static_cast<int>(step) + 1;
    EXPECT_NEAR(element(*bytes, DType::kFloat32, 0), mean_of_positions(count, 0), 1e-5) << count;
    EXPECT_NEAR(element(*bytes, DType::kFloat32, 3 * kHeadDim + 1),
                mean_of_positions(count, kHeadDim + 1), 1e-5);
  }
}

// Each step is a new sequence in the blocks of the sequence before it, as after the end of a
// request. The older sequence's read must come before the newer one's write.
TEST(MlxCacheTest, AnOlderReadInFlightIsBeforeANewerWrite) {
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  KvView view = make_view(exec, KvFormat::kFloat32);
  std::vector<Tensor> outputs;
  std::vector<HostBatch> hosts;
  constexpr int kSteps = 100;
  hosts.reserve(kSteps);
  for (int step = 0; step < kSteps; ++step) {
    Sequence sequence;
    sequence.advance(20);
    HostBatch& host = hosts.emplace_back(sequence.host);
    for (std::int32_t& position : host.positions)
      position += step * 20;  // so that rows_of() differs between steps
    view = write_step(exec, view, host);
    host.positions = Sequence().advance(20).positions;
    const Tensor q =
        exec.upload<float>(std::vector<float>(20 * 2 * kWidth, 0.0f), {20, 2 * kKvHeads, kHeadDim});
    outputs.push_back(attention(exec, q, view, upload(exec, host), {.scale = 1.0f, .sinks = {}}));
    const Tensor roots[] = {outputs.back(), view.keys.elements, view.values.elements};
    ASSERT_TRUE(exec.evaluate(roots).ok());
  }
  for (int step = 0; step < kSteps; ++step) {
    const auto bytes = exec.read(outputs[step]);
    ASSERT_TRUE(bytes.ok());
    const float last = element(*bytes, DType::kFloat32, 19 * 2 * kWidth);
    EXPECT_NEAR(last, mean_of_positions(20, 0) - step * 20, 1e-3) << step;
  }
}

class MlxCacheOfFormats : public ::testing::TestWithParam<KvFormats> {};

TEST_P(MlxCacheOfFormats, MemoryAndAddressStayOverThousandsOfSteps) {
  // Reused memory may be larger than requested. Without reuse, MLX's count of memory is exact.
  const std::size_t cache_limit = mx::set_cache_limit(0);
  const auto made = make_mlx_exec();
  Exec& exec = *made;
  KvView view =
      allocate_kv_view(exec, GetParam(), {kNumBlocks, kBlockSize, kKvHeads, kHeadDim}).value();
  const auto addresses = [&] {
    std::vector<const std::byte*> found;
    for (const Tensor& array : view.arrays()) found.push_back(exec.read(array)->data());
    return found;
  };
  const std::vector<const std::byte*> first_addresses = addresses();
  std::size_t memory = 0;
  for (int step = 0; step < 10000; ++step) {
    Sequence sequence;
    sequence.length = step % (kNumBlocks * kBlockSize);
    const HostBatch& host = sequence.advance(1);
    view = write_step(exec, view, host);
    const Tensor q = exec.upload<float>(std::vector<float>(kWidth, 1.0f), {1, kKvHeads, kHeadDim});
    const Tensor out = attention(exec, q, view, upload(exec, host), {.scale = 1.0f, .sinks = {}});
    std::vector<Tensor> roots = {out};
    for (const Tensor& array : view.arrays()) roots.push_back(array);
    ASSERT_TRUE(exec.evaluate(roots).ok());
    ASSERT_TRUE(exec.read(out).ok());
    if (step % (kNumBlocks * kBlockSize) != 0) continue;
    // Checked once per cycle, always at the same point of it, with nothing in flight.
    ASSERT_EQ(addresses(), first_addresses);
    mx::synchronize();
    if (step <= kNumBlocks * kBlockSize) memory = mx::get_active_memory();
    ASSERT_EQ(mx::get_active_memory(), memory) << step;
  }
  EXPECT_EQ(exec.counters().num_evaluations, 10000u);
  mx::set_cache_limit(cache_limit);
}

INSTANTIATE_TEST_SUITE_P(All, MlxCacheOfFormats,
                         ::testing::Values(KvFormats{KvFormat::kBFloat16, KvFormat::kBFloat16},
                                           KvFormats{KvFormat::kInt8, KvFormat::kInt8},
                                           KvFormats{KvFormat::kInt8, KvFormat::kInt4},
                                           KvFormats{KvFormat::kInt4, KvFormat::kInt4}),
                         [](const auto& info) {
                           std::string name = name_of(info.param);
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace pagoda
