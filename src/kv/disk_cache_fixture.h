// DiskCacheTest: a disk cache over a small memory, on a folder or on a fake disk with faults.
#pragma once

#include "kv/disk_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

#include "kv/block_file.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {

namespace fs = std::filesystem;
using Arrival = BlockTier::Arrival;

constexpr int kNumBlocks = 8;
constexpr std::size_t kBlockSize = 4;
constexpr std::size_t kLayerBytes = 300;

// A clock that moves only when a test moves it.
class TestClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::milliseconds(ms_)); }
  void pass(std::int64_t ms) { ms_ += ms; }

 private:
  std::atomic<std::int64_t> ms_ = 0;
};

// A disk in memory that a test can make slow, full or faulty.
class FakeFiles final : public BlockFiles {
 public:
  struct Disk {
    std::map<std::string, std::vector<std::byte>> files;
    std::map<std::string, std::int64_t> used_ns;
    std::int64_t clock_ns = 0;
    std::atomic<bool> is_full = false;
    std::atomic<bool> fails_reads = false;
    std::atomic<bool> is_read_only = false;
    std::atomic<bool> is_reading = false;
    std::atomic<std::int64_t> read_ms = 0;
    TestClock clock;
    std::counting_semaphore<> turns{1 << 20};  // each read and write takes one
    std::mutex mutex;
  };
  explicit FakeFiles(Disk& disk) : disk_(disk) {}

  Result<std::vector<BlockFileEntry>> list() override {
    const std::lock_guard lock(disk_.mutex);
    std::vector<BlockFileEntry> entries;
    for (const auto& [name, bytes] : disk_.files) {
      entries.push_back({.name = name,
                         .num_bytes = static_cast<std::int64_t>(bytes.size()),
                         .used_ns = disk_.used_ns[name]});
    }
    return entries;
  }
  Status read(const std::string& name, std::size_t expected_size,
              std::vector<std::byte>& bytes) override {
    disk_.is_reading = true;
    disk_.turns.acquire();
    disk_.clock.pass(disk_.read_ms);
    const std::lock_guard lock(disk_.mutex);
    if (disk_.fails_reads) return unavailable("[disk] input or output error");
    if (!disk_.files.contains(name)) return not_found("[disk] {}: none", name);
    bytes = disk_.files[name];
    return bytes.size() == expected_size ? ok_status() : data_loss("[disk] {}: size", name);
  }
  Status write(const std::string& name, std::span<const std::byte> bytes) override {
    disk_.turns.acquire();
    const std::lock_guard lock(disk_.mutex);
    if (disk_.is_full || disk_.is_read_only) return unavailable("[disk] no space left");
    disk_.files[name].assign(bytes.begin(), bytes.end());
    disk_.used_ns[name] = ++disk_.clock_ns;
    return ok_status();
  }
  Status remove(const std::string& name) override {
    const std::lock_guard lock(disk_.mutex);
    if (disk_.is_read_only) return unavailable("[disk] read-only");
    disk_.files.erase(name);
    return ok_status();
  }
  void mark_used(const std::string& name, std::int64_t used_ns) override {
    const std::lock_guard lock(disk_.mutex);
    disk_.used_ns[name] = used_ns;
  }

 private:
  Disk& disk_;
};

inline Sha256Digest digest_of(int number) {
  return sha256(std::to_string(number));
}
inline std::vector<int> tokens_of(int number) {
  return std::vector<int>(kBlockSize, number);
}

class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCacheTest() {
    for (auto& layer : memory_) layer.resize(kNumBlocks * kLayerBytes);
  }

  void start(std::unique_ptr<BlockFiles> files, std::int64_t max_bytes = 1 << 20,
             std::size_t max_queue_bytes = 1 << 20, int scope = 0) {
    std::vector<BlockMemory::Array> arrays;
    for (auto& layer : memory_) arrays.push_back({layer.data(), kLayerBytes});
    cache_ = std::make_unique<DiskCache>(DiskCacheOptions{.scope = digest_of(scope),
                                                          .max_bytes = max_bytes,
                                                          .block_size = kBlockSize,
                                                          .max_queue_bytes = max_queue_bytes},
                                         BlockMemory(arrays), std::move(files), disk_.clock);
  }
  void start_with_fake(std::int64_t max_bytes = 1 << 20, std::size_t max_queue_bytes = 1 << 20) {
    start(std::make_unique<FakeFiles>(disk_), max_bytes, max_queue_bytes);
  }
  void start_in_folder(std::int64_t max_bytes = 1 << 20, int scope = 0) {
    start(open_block_files(folder_ / "cache").value(), max_bytes, 1 << 20, scope);
  }

  static std::size_t file_size() { return block_file_size(kBlockSize, 2 * kLayerBytes); }

  void fill(int block_id, int number) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t i = 0; i < kLayerBytes; ++i) {
        memory_[layer][block_id * kLayerBytes + i] =
            static_cast<std::byte>(number * 31 + layer * 7 + i);
      }
    }
  }
  bool holds(int block_id, int number) {
    const auto was = memory_;
    fill(block_id, number);
    const bool is_same = was == memory_;
    memory_ = was;
    return is_same;
  }

  void store(int number) {
    fill(0, number);
    cache_->store(0, digest_of(number), tokens_of(number));
  }
  void store_and_wait(int first, int count) {
    const std::uint64_t done = cache_->counters().num_written + cache_->counters().num_dropped;
    for (int i = 0; i < count; ++i) store(first + i);
    ASSERT_TRUE(eventually([&] {
      return cache_->counters().num_written + cache_->counters().num_dropped == done + count;
    }));
  }

  BlockTier::FetchId begin_fetch(int first, int count) {
    std::vector<Sha256Digest> digests;
    std::vector<int> tokens;
    for (int i = 0; i < count; ++i) {
      digests.push_back(digest_of(first + i));
      tokens.insert(tokens.end(), kBlockSize, first + i);
    }
    return cache_->begin_fetch(digests, tokens);
  }
  int num_held(int first, int count) {
    std::vector<Sha256Digest> digests;
    for (int i = 0; i < count; ++i) digests.push_back(digest_of(first + i));
    return cache_->num_held(digests);
  }
  // Fetches blocks and checks their bytes. Returns how many came.
  int fetch(int first, int count) {
    const BlockTier::FetchId id = begin_fetch(first, count);
    int num_came = 0;
    Arrival arrival = Arrival::kAwaited;
    while (true) {
      EXPECT_TRUE(eventually([&] {
        arrival = cache_->arrival(id);
        return arrival != Arrival::kAwaited;
      }));
      if (arrival != Arrival::kHere) break;
      const int block_id = 1 + num_came % (kNumBlocks - 1);
      cache_->load(id, block_id);
      EXPECT_TRUE(holds(block_id, first + num_came)) << first + num_came;
      ++num_came;
    }
    cache_->end_fetch(id);
    return num_came;
  }

  std::vector<fs::path> files_in_folder() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
  }
  fs::path own_folder() { return fs::path(folder_ / "cache") / kBlockFolderName; }
  fs::path path_of(int number, int scope = 0) {
    const std::string digits = to_hex(digest_of(number));
    return own_folder() / to_hex(digest_of(scope)) / digits.substr(0, 2) / digits;
  }

  testing::TemporaryFolder folder_;
  FakeFiles::Disk disk_;
  std::array<std::vector<std::byte>, 2> memory_;
  std::unique_ptr<DiskCache> cache_;
};

}  // namespace pagoda
