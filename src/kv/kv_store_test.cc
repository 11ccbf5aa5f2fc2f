#include "kv/kv_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

class HeapBuffer : public Buffer {
 public:
  static BufferRef create(std::size_t size) {
    return BufferRef(new HeapBuffer(new std::byte[size](), size));
  }

 private:
  HeapBuffer(std::byte* data, std::size_t size) : Buffer(MemorySpace::kHost, data, size) {}
  void release() override {
    delete[] data_;
    delete this;
  }
};

// An Exec with heap memory up to a limit, which computes nothing.
class MemoryExec : public Exec {
 public:
  explicit MemoryExec(std::int64_t limit_bytes = 1 << 20)
      : Exec(Backend::kReference), limit_bytes_(limit_bytes) {}

  Tensor allocate(DType dtype, const Shape& shape) override {
    return Tensor(HeapBuffer::create(shape.num_elements() * dtype_size(dtype)), dtype, shape);
  }
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override {
    limit_bytes_ -= shape.num_elements() * static_cast<std::int64_t>(dtype_size(dtype));
    if (limit_bytes_ < 0) return resource_exhausted("[memory] full");
    return allocate(dtype, shape);
  }
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override {
    Tensor tensor = allocate(dtype, shape);
    std::copy(bytes.begin(), bytes.end(), tensor.buffer()->host());
    return tensor;
  }
  void prefault(const Tensor& tensor) override { prefaulted.push_back(tensor); }
  Status evaluate(std::span<const Tensor>) override { return ok_status(); }
  Result<std::span<const std::byte>> read(const Tensor& tensor) override {
    return std::span<const std::byte>(tensor.buffer()->host(), tensor.buffer()->size());
  }

  std::vector<Tensor> prefaulted;

 private:
  std::int64_t limit_bytes_;
};

KvLayout two_layers() {
  return {.block_size = 16,
          .layers = {{.formats = {KvFormat::kBFloat16, KvFormat::kBFloat16},
                      .num_kv_heads = 3,
                      .head_dim = 64},
                     {.formats = {}, .num_kv_heads = 2, .head_dim = 8, .window = 32}}};
}

TEST(KvLayout, CountsKeysAndValues) {
  const KvLayout layout = two_layers();
  EXPECT_EQ(layout.layers[0].bytes_per_token(), 2 * 2 * 3 * 64);
  EXPECT_EQ(layout.bytes_per_token(), 2 * 2 * 3 * 64 + 2 * 4 * 2 * 8);
  EXPECT_EQ(layout.bytes_per_block(), 16 * layout.bytes_per_token());
}

TEST(KvStore, HoldsZeroedKeysAndValuesOfEachLayer) {
  MemoryExec exec;
  const Result<KvStore> store = KvStore::create(exec, two_layers(), 5);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(store->num_views(), 2);
  EXPECT_EQ(store->num_blocks(), 5);
  EXPECT_EQ(store->num_bytes(), 5 * 16 * (768 + 128));
  EXPECT_EQ(store->view(0).keys.elements.shape(), (Shape{5, 16, 3, 64}));
  EXPECT_EQ(store->view(0).keys.elements.dtype(), DType::kBFloat16);
  EXPECT_EQ(store->view(1).values.elements.shape(), (Shape{5, 16, 2, 8}));
  EXPECT_EQ(store->view(1).values.elements.dtype(), DType::kFloat32);
  for (float x : store->view(1).values.elements.span<float>()) ASSERT_EQ(x, 0.0f);
  std::vector<const std::byte*> addresses;
  for (const KvView& view : store->views()) {
    addresses.push_back(view.keys.elements.buffer()->host());
    addresses.push_back(view.values.elements.buffer()->host());
  }
  std::sort(addresses.begin(), addresses.end());
  EXPECT_EQ(std::unique(addresses.begin(), addresses.end()), addresses.end());
}

TEST(KvStore, ReadsALayerThroughTheViewLastBound) {
  MemoryExec exec;
  Result<KvStore> store = KvStore::create(exec, two_layers(), 2);
  ASSERT_TRUE(store.ok());
  const auto floats = [&] {
    return KvEntries{.elements = exec.allocate(DType::kFloat32, {2, 16, 2, 8}), .scales = {}};
  };
  const KvView written = {.keys = floats(), .values = floats()};
  store->rebind(1, written);
  EXPECT_EQ(store->view(1).keys.elements.buffer().get(), written.keys.elements.buffer().get());
  EXPECT_DEATH(store->rebind(0, written), "view 0: expected 2 x 16 x 3 x 64 of bfloat16");
}

// Returns a layer of bfloat16 with a window, and two of int8 that see all positions, in one lane.
KvLayout layers_of_two_forms() {
  KvLayout layout;
  for (const int window : {8, 0, 0}) {
    const KvFormat format = window > 0 ? KvFormat::kBFloat16 : KvFormat::kInt8;
    layout.layers.push_back(
        {.formats = {format, format}, .num_kv_heads = 2, .head_dim = 8, .window = window});
  }
  deal_into_groups(layout, 1000);
  return layout;
}

TEST(KvStore, FormsOfALaneShareTheirElements) {
  MemoryExec exec;
  const KvLayout layout = layers_of_two_forms();
  ASSERT_EQ(layout.num_lanes(), 1);
  ASSERT_EQ(layout.num_groups(), 2);
  Result<KvStore> store = KvStore::create(exec, layout, 5);
  ASSERT_TRUE(store.ok()) << store.status().message();
  ASSERT_EQ(store->num_views(), 2);
  EXPECT_EQ(store->view(0).keys.elements.shape(), (Shape{5, 16, 2, 8}));
  EXPECT_EQ(store->view(1).keys.elements.shape(), (Shape{10, 16, 2, 8}));
  EXPECT_EQ(store->view(1).keys.scales.shape(), (Shape{10, 2, 1, 16}));
  const auto address = [&](int layer) { return store->view(layer).keys.elements.first_byte(); };
  EXPECT_EQ(address(0), address(1));
  EXPECT_EQ(address(1), address(2));
  EXPECT_EQ(store->num_bytes(), 5 * 16 * (2 * 2 * 2 * 8 + 2 * 2 * 2 * 2));
  // Rebinding one layer's view also moves the layers that share its memory.
  KvView written = store->view(1);
  written.keys.elements = exec.allocate(DType::kInt8, {10, 16, 2, 8});
  store->rebind(2, written);
  EXPECT_EQ(address(0), written.keys.elements.first_byte());
  EXPECT_EQ(store->view(0).keys.elements.dtype(), DType::kBFloat16);
  EXPECT_NE(store->view(0).values.elements.first_byte(), address(0));
}

// The slots of arrays that were prefaulted: the first one and their count.
using Slots = std::vector<std::pair<std::int64_t, std::int64_t>>;

Slots prefault_all(KvStore& store, MemoryExec& exec, std::int64_t first_slot,
                   std::int64_t num_slots) {
  exec.prefaulted.clear();
  while (store.prefault(exec, first_slot, num_slots)) continue;
  Slots slots;
  for (const Tensor& part : exec.prefaulted)
    slots.emplace_back(part.offset() / part.stride(0), part.extent(0));
  return slots;
}

// 6,400 slots. A megabyte holds the first layer's keys of 2,730 slots.
constexpr int kNumBlocks = 400;
constexpr std::int64_t kStoreBytes = 1 << 24;

TEST(KvStore, PrefaultsSomeOfAnArrayACallAndNothingTwice) {
  MemoryExec exec(kStoreBytes);
  Result<KvStore> store = KvStore::create(exec, two_layers(), kNumBlocks);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(prefault_all(*store, exec, 0, 20), Slots(4, {0, 2730}));
  std::set<const Buffer*> arrays;
  for (const Tensor& part : exec.prefaulted) {
    arrays.insert(part.buffer().get());
    EXPECT_LE(part.shape().num_elements() * dtype_size(part.dtype()), KvStore::kPrefaultBytes);
  }
  EXPECT_EQ(arrays.size(), 4u);
  EXPECT_EQ(prefault_all(*store, exec, 0, 2730), Slots());
  EXPECT_EQ(prefault_all(*store, exec, 1, 2730), Slots(4, {2730, 2730}));
  EXPECT_EQ(prefault_all(*store, exec, 6000, 1024), Slots(4, {5460, 940}));
  EXPECT_EQ(prefault_all(*store, exec, 0, 6400), Slots());
  EXPECT_EQ(prefault_all(*store, exec, 6400, 1024), Slots());
}

TEST(KvStore, PrefaultsNothingThatLiesBefore) {
  MemoryExec exec(kStoreBytes);
  Result<KvStore> store = KvStore::create(exec, two_layers(), kNumBlocks);
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE(store->prefault(exec, 0, 20));
  EXPECT_EQ(prefault_all(*store, exec, 6000, 10), Slots(4, {5460, 940}));
}

TEST(KvStore, LeavesWhatIsNotWantedYetForLater) {
  MemoryExec exec(kStoreBytes);
  Result<KvStore> store = KvStore::create(exec, two_layers(), kNumBlocks);
  ASSERT_TRUE(store.ok());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(store->prefault(exec, 0, 3000));
  EXPECT_FALSE(store->prefault(exec, 0, 2000));
  EXPECT_EQ(prefault_all(*store, exec, 0, 3000), Slots(3, {2730, 2730}));
}

TEST(KvStore, SaysWhatItCannotHold) {
  MemoryExec exec;
  KvLayout layout = two_layers();
  EXPECT_THAT(KvStore::create(exec, layout, 0).status().message(), HasSubstr("got 0 of 16"));
  layout.layers[1].head_dim = 0;
  EXPECT_THAT(KvStore::create(exec, layout, 1).status().message(), HasSubstr("layer 1"));
  layout.layers[1] = {
      .formats = {KvFormat::kInt8, KvFormat::kInt4}, .num_kv_heads = 1, .head_dim = 17};
  EXPECT_THAT(KvStore::create(exec, layout, 1).status().message(), HasSubstr("for int4, got 17"));
  layout.layers[1] = {.num_kv_heads = 1 << 30, .head_dim = 1 << 30};
  EXPECT_EQ(KvStore::create(exec, layout, 1 << 20).status().code(), StatusCode::kInvalidArgument);
}

TEST(KvStore, PassesOnThatMemoryIsShort) {
  MemoryExec exec(/*limit_bytes=*/100000);
  EXPECT_TRUE(KvStore::create(exec, two_layers(), 6).ok());
  EXPECT_EQ(KvStore::create(exec, two_layers(), 2).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pagoda
