#include "weights/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using testing::TemporaryFolder;

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 4096);
  return bytes;
}

// Expects `wanted` of the pages of `bytes` in this process's page table. A released page leaves
// this table, although the system still caches the file. Without /proc only the contents are
// checked.
void expect_present_pages(std::span<const std::byte> bytes, std::size_t wanted) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  FILE* pagemap = std::fopen("/proc/self/pagemap", "rb");
  if (pagemap == nullptr) return;
  std::size_t count = 0;
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  for (std::uintptr_t at = start; at < start + bytes.size(); at += page) {
    std::uint64_t entry = 0;
    std::fseek(pagemap, static_cast<long>(at / page * sizeof(entry)), SEEK_SET);
    if (std::fread(&entry, sizeof(entry), 1, pagemap) == 1 && (entry >> 63) != 0) ++count;
  }
  std::fclose(pagemap);
  EXPECT_EQ(count, wanted);
}

TEST(MappedFileTest, HasTheFilesBytes) {
  const TemporaryFolder folder;
  const auto wanted = pattern(10'000);
  testing::write_file(folder / "file", wanted);
  const auto file = MappedFile::open(folder / "file");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(std::ranges::equal((*file)->bytes(), wanted));
}

TEST(MappedFileTest, APointerOfGitLfsIsNotTheFile) {
  const TemporaryFolder folder;
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/v1\nsize 12\n";
  testing::write_file(folder / "model.safetensors", std::as_bytes(std::span(kPointer)));
  const Status status = MappedFile::open(folder / "model.safetensors").status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("git lfs pull"), std::string::npos) << status.message();
}

// Loading ends like this if another process writes another checkpoint into the file meanwhile.
TEST(MappedFileDeathTest, AFileThatIsCutWhileItIsReadIsNamed) {
  const TemporaryFolder folder;
  testing::write_file(folder / "weights.gguf", pattern(40'000));
  const auto file = MappedFile::open(folder / "weights.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::filesystem::resize_file(folder / "weights.gguf", 100);
  const volatile std::byte* const last = &(*file)->bytes().back();
  EXPECT_EXIT((void)*last, ::testing::ExitedWithCode(1), "weights.gguf: .* was cut");
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  testing::write_file(folder / "empty", {});
  const auto file = MappedFile::open(folder / "empty");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE((*file)->bytes().empty());
  (*file)->release_pages((*file)->bytes());
}

TEST(MappedFileTest, ReleasedPagesLeaveMemoryAndStayReadable) {
  const TemporaryFolder folder;
  const std::size_t page = ::sysconf(_SC_PAGESIZE);
  const auto wanted = pattern(16 * page + 100);
  testing::write_file(folder / "file", wanted);
  const auto opened = MappedFile::open(folder / "file");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const MappedFile& file = **opened;
  ASSERT_TRUE(std::ranges::equal(file.bytes(), wanted));
  expect_present_pages(file.bytes(), 17);

  // From the middle of page 2 to the middle of page 6: pages 3, 4 and 5 are wholly inside.
  file.release_pages(file.bytes().subspan(2 * page + 50, 4 * page));
  expect_present_pages(file.bytes().first(3 * page), 3);
  expect_present_pages(file.bytes().subspan(3 * page, 3 * page), 0);
  expect_present_pages(file.bytes().subspan(6 * page), 11);
  EXPECT_TRUE(std::ranges::equal(file.bytes(), wanted));

  file.release_pages(file.bytes());
  expect_present_pages(file.bytes(), 0);
  EXPECT_TRUE(std::ranges::equal(file.bytes(), wanted));
}

TEST(MappedFileTest, SaysWhatCannotBeOpened) {
  const TemporaryFolder folder;
  const auto missing = MappedFile::open(folder / "missing");
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("missing"), std::string::npos);
  EXPECT_EQ(MappedFile::open(folder.path()).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder / "pipe").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagoda
