#include "tensor/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "tests/support/count_news.h"

namespace pagoda {
namespace {

std::shared_ptr<Arena> make_arena() {
  return Arena::create({.reserve_bytes = std::size_t{1} << 30}).value();
}

// Runs a step as a model does: results of seeded sizes, each released some allocations later.
std::vector<std::byte*> run_step(Arena& arena, std::vector<BufferRef>& live) {
  std::mt19937 random(7);
  std::vector<std::byte*> addresses;
  addresses.reserve(200);
  for (int i = 0; i < 200; ++i) {
    BufferRef buffer = arena.allocate(random() % 100'000);
    addresses.push_back(buffer->host());
    live[random() % live.size()] = std::move(buffer);
  }
  for (BufferRef& buffer : live) buffer = BufferRef();
  return addresses;
}

TEST(Arena, SameSequenceTakesSameAddresses) {
  const auto arena = make_arena();
  std::vector<BufferRef> live(13);
  const auto first = run_step(*arena, live);
  for (int step = 0; step < 5; ++step) EXPECT_EQ(run_step(*arena, live), first);
  EXPECT_EQ(arena->used_bytes(), 0u);
}

TEST(Arena, SteadyStateAllocatesNothing) {
  const auto arena = make_arena();
  std::vector<BufferRef> live(13);
  run_step(*arena, live);
  const std::size_t before = testing::num_news();
  for (int i = 0; i < 10'000; ++i) live[i % live.size()] = arena->allocate(i % 5000);
  for (BufferRef& buffer : live) buffer = BufferRef();
  EXPECT_EQ(testing::num_news(), before);
}

TEST(Arena, SpansAreAlignedAndApart) {
  const auto arena = make_arena();
  std::mt19937 random(3);
  struct Owned {
    BufferRef buffer;
    int value = 0;
  };
  std::vector<Owned> live(32);
  for (int i = 0; i < 3000; ++i) {
    Owned& owned = live[random() % live.size()];
    if (owned.buffer) {
      for (std::size_t b = 0; b < owned.buffer->size(); ++b) {
        ASSERT_EQ(static_cast<int>(owned.buffer->host()[b]), owned.value) << "step " << i;
      }
    }
    owned = {arena->allocate(random() % 500), i % 251};
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(owned.buffer->host()) % Arena::kAlignment, 0u);
    std::memset(owned.buffer->host(), owned.value, owned.buffer->size());
  }
}

TEST(Arena, HolesJoinWithBothNeighbours) {
  const auto arena = make_arena();
  std::vector<BufferRef> parts(4);
  for (BufferRef& part : parts) part = arena->allocate(1000);
  std::byte* const begin = parts[0]->host();
  for (const int i : {1, 3, 0, 2}) parts[i] = BufferRef();
  const BufferRef whole = arena->allocate(arena->reserved_bytes());
  EXPECT_EQ(whole->host(), begin);
}

TEST(Arena, FirstFitTakesTheLowestHole) {
  const auto arena = make_arena();
  std::vector<BufferRef> parts(5);
  for (BufferRef& part : parts) part = arena->allocate(640);
  std::byte* const low = parts[1]->host();
  parts[3] = BufferRef();
  parts[1] = BufferRef();
  EXPECT_EQ(arena->allocate(64)->host(), low);
}

TEST(Arena, BuffersOutliveTheirOwner) {
  auto arena = make_arena();
  BufferRef buffer = arena->allocate(100);
  arena.reset();
  std::memset(buffer->host(), 1, buffer->size());
  const BufferRef copy = buffer;
  buffer = BufferRef();
  EXPECT_EQ(static_cast<int>(copy->host()[99]), 1);
}

TEST(Arena, ReservesFewerAddressesWhereSoManyAreRefused) {
  const auto arena = Arena::create({.reserve_bytes = std::size_t{1} << 52}).value();
  EXPECT_LT(arena->reserved_bytes(), std::size_t{1} << 52);
  EXPECT_GE(arena->reserved_bytes(), std::size_t{64} << 20);
}

TEST(Arena, OtherThreadsMayLetGoLast) {
  const auto arena = make_arena();
  std::vector<std::thread> threads(4);
  for (std::thread& thread : threads) {
    thread = std::thread([&arena] {
      for (int i = 0; i < 2000; ++i) arena->allocate(64 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena->used_bytes(), 0u);
}

TEST(MapZeroedBytes, IsZeroAndItsOwn) {
  const BufferRef buffer = map_zeroed_bytes(100'000, true).value();
  for (std::size_t i = 0; i < buffer->size(); ++i) {
    ASSERT_EQ(static_cast<int>(buffer->host()[i]), 0);
  }
  EXPECT_EQ(map_zeroed_bytes(std::size_t{1} << 60, false).status().code(),
            StatusCode::kResourceExhausted);
}

#ifdef MADV_POPULATE_WRITE
// Returns how many pages of the bytes the system has allocated.
std::ptrdiff_t num_resident_pages(std::span<std::byte> bytes) {
  std::vector<unsigned char> pages(bytes.size() / sysconf(_SC_PAGESIZE) + 1);
  EXPECT_EQ(mincore(bytes.data(), bytes.size(), pages.data()), 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

TEST(Prefault, GivesThePagesAndKeepsTheirValues) {
  const std::size_t page = sysconf(_SC_PAGESIZE);
  const BufferRef buffer = map_zeroed_bytes(16 * page, false).value();
  const std::span<std::byte> bytes(buffer->host(), buffer->size());
  bytes[2 * page] = std::byte{7};
  EXPECT_EQ(num_resident_pages(bytes), 1);
  const bool can_give = madvise(bytes.data(), page, MADV_POPULATE_WRITE) == 0;  // Linux 5.14
  prefault(bytes.subspan(page + 100, 3 * page));  // begins and ends within a page
  EXPECT_EQ(num_resident_pages(bytes), can_give ? 5 : 1);
  EXPECT_EQ(bytes[2 * page], std::byte{7});
  EXPECT_EQ(bytes[3 * page], std::byte{0});
}
#endif

}  // namespace
}  // namespace pagoda
