#include "weights/gguf_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "weights/gguf_types.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

std::vector<std::string> files_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename());
  }
  return names;
}

GgufPlan small_plan() {
  GgufPlan plan;
  plan.metadata.set("general.architecture", "llama")
      .set("a.bool", true)
      .set("an.int", std::int32_t{-7})
      .set("a.byte", std::uint8_t{200})
      .set("a.float", 0.5f)
      .set("strings", std::vector<std::string>{"one", "", "three"})
      .set("floats", std::vector<float>{1, 2.5f});
  plan.tensors = {{"blk.0.ffn_up.weight", {3, 64}, WeightFormat::kQ8_0},
                  {"output_norm.weight", {5}, WeightFormat::kF32},
                  {"one", {1, 256}, WeightFormat::kQ4_K}};
  return plan;
}

// Random bytes for every tensor, passed to the sink in pieces of any length.
class RandomSource {
 public:
  explicit RandomSource(const GgufPlan& plan) {
    for (const GgufTensorPlan& tensor : plan.tensors) {
      bytes.emplace_back(packed_bytes(tensor.format, tensor.shape.num_elements()));
      for (std::byte& byte : bytes.back()) byte = static_cast<std::byte>(random_());
    }
  }
  Status operator()(std::size_t index, const GgufSink& sink) {
    std::span<const std::byte> rest = bytes[index];
    while (!rest.empty()) {
      const std::size_t length = std::min<std::size_t>(1 + random_() % 50, rest.size());
      PAGODA_RETURN_IF_ERROR(sink(rest.first(length)));
      rest = rest.subspan(length);
    }
    return ok_status();
  }
  std::vector<std::vector<std::byte>> bytes;

 private:
  std::mt19937 random_{11};
};

TEST(GgufWriterTest, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.gguf";
  const GgufPlan plan = small_plan();
  RandomSource source(plan);
  ASSERT_EQ(write_gguf(path, plan, std::ref(source)).message(), "");
  EXPECT_EQ(files_in(folder), std::vector<std::string>{"m.gguf"});

  const auto read = GgufFile::open(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const GgufFile& file = **read;
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(*file.string("general.architecture"), "llama");
  EXPECT_TRUE(*file.boolean("a.bool"));
  EXPECT_EQ(*file.integer("an.int"), -7);
  EXPECT_EQ(*file.integer("a.byte"), 200);
  EXPECT_EQ(*file.number("a.float"), 0.5);
  EXPECT_EQ(*file.strings("strings"), (std::vector<std::string_view>{"one", "", "three"}));
  EXPECT_EQ(*file.numbers("floats"), (std::vector<float>{1, 2.5f}));
  ASSERT_EQ(file.tensors().size(), plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.name, plan.tensors[i].name);
    EXPECT_EQ(tensor.shape, plan.tensors[i].shape);
    EXPECT_EQ(tensor.format, plan.tensors[i].format);
    EXPECT_EQ(std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end()), source.bytes[i]);
  }
}

TEST(GgufWriterTest, EntriesAreCopiedAsTheyAre) {
  const TemporaryFolder folder;
  const GgufPlan plan = small_plan();
  RandomSource source(plan);
  ASSERT_TRUE(write_gguf(folder / "a.gguf", plan, std::ref(source)).ok());
  const auto first = *GgufFile::open(folder / "a.gguf");
  GgufPlan again{.metadata = {}, .tensors = plan.tensors};
  for (const GgufEntry& entry : first->entries()) again.metadata.copy(entry);
  ASSERT_TRUE(write_gguf(folder / "b.gguf", again, std::ref(source)).ok());
  const auto bytes = [&](const char* name) {
    std::ifstream file(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(bytes("a.gguf"), bytes("b.gguf"));
}

TEST(GgufWriterTest, KeepsTheAlignmentThatItIsTold) {
  const TemporaryFolder folder;
  GgufPlan plan = small_plan();
  plan.alignment = 256;
  plan.metadata.set("general.alignment", std::uint32_t{256});
  RandomSource source(plan);
  ASSERT_TRUE(write_gguf(folder / "m.gguf", plan, std::ref(source)).ok());
  const auto file = GgufFile::open(folder / "m.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(std::equal(source.bytes[2].begin(), source.bytes[2].end(),
                         (*file)->tensors()[2].bytes.begin()));
}

TEST(GgufWriterTest, AFailureLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.gguf";
  std::ofstream(path) << "old";
  const Status status = write_gguf(path, small_plan(), [](std::size_t index, const GgufSink& sink) {
    if (index == 1) return cancelled("enough");
    return sink(std::vector<std::byte>(3 * 2 * 34));
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(files_in(folder), std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

// The system releases a killed process's lock, so its files can be recognised and removed.
TEST(GgufWriterTest, WhatKilledProcessesLeftGoes) {
  const TemporaryFolder folder;
  const std::vector<std::string> others = {"m.gguf.partial-3", "m.gguf.partial-",
                                           "m.gguf.partial-4a", "am.gguf.partial-5",
                                           "m.gguf.partial-6"};
  for (const std::string& name : others) std::ofstream(folder / name) << "half";
  std::ofstream(folder / "m.gguf.partial-1") << "half";
  std::ofstream(folder / "m.gguf.partial-2") << "half";
  std::filesystem::remove(folder / "m.gguf.partial-6");
  std::filesystem::create_directory(folder / "m.gguf.partial-6");
  const int locked = ::open((folder / "m.gguf.partial-3").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  const GgufPlan plan = small_plan();
  RandomSource source(plan);
  EXPECT_EQ(write_gguf(folder / "m.gguf", plan, std::ref(source)).message(), "");
  ::close(locked);
  std::vector<std::string> expected = others;
  expected.push_back("m.gguf");
  EXPECT_THAT(files_in(folder), ::testing::UnorderedElementsAreArray(expected));
}

TEST(GgufWriterTest, SaysWhereItCannotWrite) {
  const TemporaryFolder folder;
  const auto source = [](std::size_t, const GgufSink&) { return ok_status(); };
  const Status missing = write_gguf(folder / "nowhere/m.gguf", GgufPlan(), source);
  EXPECT_EQ(missing.code(), StatusCode::kUnavailable);
  EXPECT_THAT(missing.message(), HasSubstr("nowhere/m.gguf: No such file or directory"));
  std::filesystem::create_directory(folder / "m.gguf");
  EXPECT_THAT(write_gguf(folder / "m.gguf", GgufPlan(), source).message(),
              HasSubstr("Is a directory"));
  EXPECT_EQ(files_in(folder).size(), 1u);
}

TEST(GgufTypesTest, EveryFormatHasANumberOfItsOwn) {
  for (const WeightFormat format : kWeightFormats) {
    const auto type_id = gguf_type_id(format);
    ASSERT_TRUE(type_id.has_value());
    EXPECT_EQ(gguf_weight_format(*type_id), format);
    EXPECT_EQ(gguf_tensor_type_name(*type_id), traits_of(format).name);
  }
  EXPECT_FALSE(gguf_type_id(WeightFormat::kAffine).has_value());
  EXPECT_FALSE(gguf_weight_format(21).has_value());
}

}  // namespace
}  // namespace pagoda
