#include "kv/memory_populator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "tensor/arena.h"

namespace pagoda {
namespace {

#ifdef MADV_POPULATE_WRITE
constexpr std::int64_t kFloats = std::int64_t{24} << 20;  // 96 MiB

Tensor mapped_floats(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  return {map_zeroed_bytes(bytes, /*huge_pages=*/false).value(), DType::kFloat32, {count}};
}

// The share of the tensor's pages that are there.
double resident_share(const Tensor& tensor) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t num_pages = tensor.buffer()->size() / page;
  std::vector<unsigned char> is_resident(num_pages);
  EXPECT_EQ(mincore(tensor.buffer()->data(), num_pages * page, is_resident.data()), 0);
  const auto count = std::count_if(is_resident.begin(), is_resident.end(),
                                   [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<double>(count) / static_cast<double>(num_pages);
}

TEST(MemoryPopulator, BringsAllPagesAndKeepsWhatIsWrittenMeanwhile) {
  const Tensor first = mapped_floats(kFloats);
  const Tensor second = mapped_floats(1000);
  EXPECT_LT(resident_share(first), 0.1);
  first.data<float>()[5] = 1;
  const MemoryPopulator populator({first, second});
  first.data<float>()[kFloats - 5] = 2;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (resident_share(first) < 1 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(resident_share(first), 1);
  const std::span<const float> values = first.span<float>();
  EXPECT_EQ(values[5], 1);
  EXPECT_EQ(values[kFloats - 5], 2);
  EXPECT_EQ(std::count(values.begin(), values.end(), 0.0f), kFloats - 2);
}

TEST(MemoryPopulator, EndsWhenItIsNoLongerWanted) {
  const Tensor memory = mapped_floats(8 * kFloats);
  {
    const MemoryPopulator populator({memory});
    while (resident_share(memory) == 0) std::this_thread::yield();
  }
  EXPECT_LT(resident_share(memory), 0.9);
}
#endif

TEST(MemoryPopulator, OfNothingDoesNothing) {
  const MemoryPopulator populator;
  const MemoryPopulator of_no_tensor(std::vector<Tensor>{});
}

}  // namespace
}  // namespace pagoda
