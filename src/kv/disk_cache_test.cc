#include "kv/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "kv/disk_cache_fixture.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261125;

TEST_F(DiskCacheTest, KeepsBlocksOverARestartForTheirOwnerAlone) {
  ::umask(0);  // shows files that are made without a mode
  start_in_folder();
  for (int i = 0; i < 5; ++i) store(i);
  cache_.reset();  // writes the queued blocks
  start_in_folder();
  EXPECT_EQ(num_held(0, 6), 5);
  EXPECT_EQ(fetch(0, 5), 5);
  EXPECT_EQ(cache_->counters().num_read, 5u);
  EXPECT_EQ(cache_->counters().num_bytes, static_cast<std::int64_t>(5 * file_size()));
  ::umask(022);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache")) {
    const auto modes = entry.is_directory() ? 0700 : 0600;
    EXPECT_EQ(static_cast<int>(entry.status().permissions()), modes) << entry.path();
  }
  EXPECT_EQ(static_cast<int>(fs::status(folder_ / "cache").permissions()), 0700);
}

TEST_F(DiskCacheTest, ABlockThatIsThereIsNotWrittenTwice) {
  start_with_fake();
  store_and_wait(0, 1);
  store(0);
  store_and_wait(1, 1);
  EXPECT_EQ(cache_->counters().num_written, 2u);
}

TEST_F(DiskCacheTest, AnotherScopeFindsNothing) {
  start_in_folder();
  store_and_wait(0, 2);
  start_in_folder(1 << 20, /*scope=*/1);
  EXPECT_EQ(num_held(0, 2), 0);
  EXPECT_EQ(cache_->counters().num_bytes, static_cast<std::int64_t>(2 * file_size()));
}

TEST_F(DiskCacheTest, WrongFilesAreMissesThatAreCountedAndRemoved) {
  std::mt19937_64 random(kSeed);
  const auto damage = [&](int kind) {
    const fs::path path = path_of(1);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    if (kind == 0) fs::resize_file(path, random() % file_size());
    if (kind == 1) {
      const auto at = static_cast<std::streamoff>(random() % file_size());
      file.seekg(at);
      const char was = static_cast<char>(file.get());
      file.seekp(at);
      file.put(static_cast<char>(was ^ (1 << random() % 8)));
    }
    if (kind == 2) fs::copy_file(path_of(2), path, fs::copy_options::overwrite_existing);
    if (kind == 3) fs::resize_file(path, file_size() + 1 + random() % 100);
  };
  for (int i = 0; i < 60; ++i) {
    start_in_folder();
    for (int number = 0; number < 3; ++number) store(number);
    cache_.reset();
    start_in_folder();
    damage(i % 4);
    EXPECT_EQ(fetch(0, 3), 1) << "seed " << kSeed << ", damage " << i;
    EXPECT_EQ(cache_->counters().num_failed, 1u);
    EXPECT_EQ(num_held(0, 3), 1);
    EXPECT_FALSE(fs::exists(path_of(1)));
  }
}

TEST_F(DiskCacheTest, AFileThatSomebodyHasRemovedIsAMiss) {
  start_in_folder();
  store_and_wait(0, 3);
  fs::remove(path_of(1));
  EXPECT_EQ(fetch(0, 3), 1);
  EXPECT_EQ(cache_->counters().num_failed, 0u);
  EXPECT_EQ(num_held(1, 1), 0);
}

TEST_F(DiskCacheTest, WhereTheQueueIsFullBlocksAreDroppedAndNobodyWaits) {
  start_with_fake(1 << 20, /*max_queue_bytes=*/3 * file_size());
  while (disk_.turns.try_acquire()) continue;  // the disk takes no reads or writes
  for (int i = 0; i < 10; ++i) store(i);
  EXPECT_EQ(cache_->counters().num_dropped, 7u);
  disk_.turns.release(1 << 10);
  cache_.reset();
  EXPECT_EQ(disk_.files.size(), 3u);
}

TEST_F(DiskCacheTest, AFullDiskDropsBlocksUntilItTakesThem) {
  start_with_fake();
  disk_.is_full = true;
  store_and_wait(0, 4);
  EXPECT_EQ(cache_->counters().num_dropped, 4u);
  EXPECT_EQ(num_held(0, 4), 0);
  disk_.is_full = false;
  store_and_wait(0, 4);
  EXPECT_EQ(fetch(0, 4), 4);
}

TEST_F(DiskCacheTest, AReadOnlyDiskIsRead) {
  start_with_fake();
  store_and_wait(0, 3);
  disk_.is_read_only = true;
  store_and_wait(3, 1);
  EXPECT_EQ(cache_->counters().num_dropped, 1u);
  EXPECT_EQ(fetch(0, 3), 3);
  disk_.files.begin()->second[200] ^= std::byte{1};  // a wrong file that cannot be removed
  const std::string name = disk_.files.begin()->first;
  int wrong = 0;
  while (name.find(to_hex(digest_of(wrong))) == std::string::npos) ++wrong;
  EXPECT_EQ(fetch(wrong, 1), 0);
  EXPECT_EQ(num_held(wrong, 1), 0);
}

TEST_F(DiskCacheTest, ADiskThatFailsReadsEndsTheFetch) {
  start_with_fake();
  store_and_wait(0, 3);
  disk_.fails_reads = true;
  EXPECT_EQ(fetch(0, 3), 0);
  EXPECT_EQ(cache_->counters().num_failed, 1u);
}

TEST_F(DiskCacheTest, ADiskThatHangsEndsTheFetch) {
  start_with_fake();
  store_and_wait(0, 3);
  while (disk_.turns.try_acquire()) continue;
  const BlockTier::FetchId id = begin_fetch(0, 3);
  ASSERT_TRUE(eventually([&] { return disk_.is_reading.load(); }));
  EXPECT_EQ(cache_->arrival(id), Arrival::kAwaited);
  disk_.clock.pass(3000);
  EXPECT_EQ(cache_->arrival(id), Arrival::kNever);
  cache_->end_fetch(id);
  EXPECT_EQ(cache_->counters().num_failed, 1u);
  disk_.turns.release(1 << 10);
  EXPECT_TRUE(eventually([&] { return cache_->counters().num_read == 1; }));
  EXPECT_EQ(fetch(0, 3), 3);
}

TEST_F(DiskCacheTest, ADiskThatIsSlowerThanComputingEndsTheFetch) {
  start_with_fake();
  store_and_wait(0, 40);
  disk_.read_ms = 15;
  EXPECT_EQ(fetch(0, 40), 40);
  disk_.read_ms = 150;
  EXPECT_EQ(fetch(0, 40), 8);  // a fetch may take 1 s, and 20 ms more per block
  EXPECT_EQ(cache_->counters().num_failed, 1u);
}

TEST_F(DiskCacheTest, NoMoreIsReadAheadThanThereIsRoomFor) {
  start_with_fake(1 << 20, /*max_queue_bytes=*/2 * file_size());
  for (int i = 0; i < 6; ++i) store_and_wait(i, 1);
  const BlockTier::FetchId id = begin_fetch(0, 6);
  ASSERT_TRUE(eventually([&] { return cache_->counters().num_read == 2; }));
  cache_->pass(id);
  ASSERT_TRUE(eventually([&] { return cache_->counters().num_read == 3; }));
  cache_->end_fetch(id);
  EXPECT_EQ(fetch(0, 6), 6);
}

TEST_F(DiskCacheTest, TheFilesUsedLeastRecentlyGo) {
  const auto most = static_cast<std::int64_t>(10 * file_size());
  start_with_fake(most);
  store_and_wait(0, 8);
  EXPECT_EQ(fetch(0, 1), 1);  // marks the file as used
  store_and_wait(100, 3);
  EXPECT_EQ(num_held(0, 1), 1);
  EXPECT_EQ(num_held(1, 1), 0);
  EXPECT_GT(cache_->counters().num_evicted_files, 0u);
  EXPECT_LE(cache_->counters().num_bytes, most);
}

// Two engines with different scopes write, and one of them restarts. After every write the folder
// is within its bound.
TEST_F(DiskCacheTest, TheBoundHoldsForAllThatShareAFolder) {
  std::mt19937_64 random(kSeed);
  const auto most = static_cast<std::int64_t>(40 * file_size());
  start_in_folder(most);
  std::unique_ptr<DiskCache> first = std::move(cache_);
  start_in_folder(most, /*scope=*/1);
  for (int i = 0; i < 300; ++i) {
    if (i % 90 == 89) start_in_folder(most, /*scope=*/1);
    if (random() % 2 == 0) std::swap(first, cache_);
    store_and_wait(i, 1);
    std::uintmax_t total = 0;
    for (const fs::path& path : files_in_folder()) total += fs::file_size(path);
    ASSERT_LE(total, static_cast<std::uintmax_t>(most)) << "seed " << kSeed << ", block " << i;
    if (i > 100) {
      ASSERT_GT(total, static_cast<std::uintmax_t>(most / 2));
    }
  }
}

TEST_F(DiskCacheTest, WhatAKilledProcessLeftGoesAndForeignFilesStay) {
  start_in_folder();
  store_and_wait(0, 1);
  cache_.reset();
  const fs::path left = path_of(0).string() + ".0123456789abcdef.unfinished";
  const fs::path foreign = own_folder() / "notes.txt";
  for (const fs::path& path : {left, foreign}) {
    std::ofstream(path) << "half";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  start_in_folder();
  ASSERT_TRUE(eventually([&] { return !fs::exists(left); }));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_EQ(fetch(0, 1), 1);
}

// The folder of a scope is a link, or that of a prefix within it.
TEST_F(DiskCacheTest, LinksLeadNowhere) {
  for (const bool is_scope : {true, false}) {
    start_in_folder();
    store_and_wait(0, 1);
    cache_.reset();
    const fs::path folder = path_of(0).parent_path();
    const fs::path link = is_scope ? folder.parent_path() : folder;
    fs::rename(link, folder_ / "elsewhere");
    fs::create_directory_symlink(folder_ / "elsewhere", link);
    const auto time = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(path_of(0), time);
    const auto files = open_block_files(folder_ / "cache").value();
    EXPECT_TRUE(files->list().value().empty());
    const std::string name = path_of(0).lexically_relative(own_folder()).string();
    std::vector<std::byte> bytes;
    EXPECT_FALSE(files->read(name, file_size(), bytes).ok());
    EXPECT_FALSE(files->write(name, std::vector<std::byte>(3)).ok());
    EXPECT_FALSE(files->remove(name).ok());
    files->mark_used(name, 1);
    EXPECT_EQ(fs::file_size(path_of(0)), file_size());
    EXPECT_EQ(fs::last_write_time(path_of(0)), time);
    EXPECT_EQ(files_in_folder().size(), 0u);
    fs::remove_all(folder_ / "elsewhere");
    fs::remove_all(folder_ / "cache");
  }
}

TEST_F(DiskCacheTest, AFolderThatGoesMeanwhileIsMadeAgain) {
  start_in_folder();
  store_and_wait(0, 1);
  fs::remove_all(folder_ / "cache");
  EXPECT_EQ(fetch(0, 1), 0);
  store_and_wait(1, 1);
  EXPECT_EQ(fetch(1, 1), 1);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeWrittenIsRefused) {
  std::ofstream(folder_ / "file") << "x";
  for (const std::string& path : {folder_ / "file", folder_ / "file/below"}) {
    const auto files = open_block_files(path);
    ASSERT_FALSE(files.ok());
    EXPECT_NE(files.status().message().find("prefix-cache-dir: expected a folder to make one in"),
              std::string::npos)
        << files.status().message();
  }
}

}  // namespace
}  // namespace pagoda
