#include "weights/safetensors.h"
#include "tests/support/case_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using testing::safetensors_bytes;
using testing::SafetensorsWriter;

SafetensorsWriter small_safetensors_file() {
  const std::vector<float> values{0, 1, -2, 0.5f, 3, -0.25f};
  SafetensorsWriter writer;
  writer.add("b.weight", {2, 3}, WeightFormat::kBF16, values);
  writer.add("a.weight", {3, 2}, WeightFormat::kF32, values);
  writer.add("c.bias", {6}, WeightFormat::kF16, values);
  return writer;
}

Status status_of(std::string_view header, std::size_t data_bytes) {
  const std::vector<std::byte> data(data_bytes);
  return parse_safetensors(safetensors_bytes(header, data), nullptr).status();
}

void read_everything(const std::vector<StoredTensor>& tensors) {
  for (const StoredTensor& stored : tensors) {
    if (stored.unsupported.empty()) {
      testing::dequantize(stored.tensor.format, stored.tensor.bytes);
    }
  }
}

TEST(SafetensorsTest, ReadsWhatWasWritten) {
  const auto bytes = small_safetensors_file().bytes();
  const auto parsed = parse_safetensors(bytes, nullptr);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->size(), 3u);
  const HostTensor& b = (*parsed)[0].tensor;
  EXPECT_EQ(b.name, "b.weight");
  EXPECT_EQ(b.shape, (Shape{2, 3}));
  EXPECT_EQ(b.format, WeightFormat::kBF16);
  for (const StoredTensor& stored : *parsed) {
    EXPECT_EQ(testing::dequantize(stored.tensor.format, stored.tensor.bytes),
              (std::vector<float>{0, 1, -2, 0.5f, 3, -0.25f}));
  }
}

TEST(SafetensorsTest, ReadsScalarsEmptyTensorsAndFilesWithoutAny) {
  EXPECT_TRUE(status_of("{}", 0).ok());
  const auto bytes = SafetensorsWriter()
                         .add("scalar", Shape{}, WeightFormat::kF32, std::vector<float>{2})
                         .add("empty", {0, 7}, WeightFormat::kF32, {})
                         .bytes();
  const auto parsed = parse_safetensors(bytes, nullptr);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->size(), 2u);
}

TEST(SafetensorsTest, ADTypeThatNothingReadsIsNoErrorYet) {
  const auto bytes = SafetensorsWriter()
                         .add_raw("ids", {2}, "I64", std::vector<std::byte>(16))
                         .add_raw("new", {3}, "F4", std::vector<std::byte>(2))
                         .bytes();
  const auto parsed = parse_safetensors(bytes, nullptr);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ((*parsed)[0].unsupported, "I64");
  EXPECT_EQ((*parsed)[1].unsupported, "F4");
}

TEST(SafetensorsTest, EveryTruncationIsAnError) {
  const auto whole = small_safetensors_file().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + size);
    const Status status = parse_safetensors(part, nullptr).status();
    ASSERT_EQ(status.code(), StatusCode::kDataLoss) << size << ": " << status.message();
  }
}

TEST(SafetensorsTest, EveryChangedByteIsReadOrRefused) {
  const auto whole = small_safetensors_file().bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char value : std::string_view("\0\1\"[{},9-\x80\xff", 11)) {
      auto bytes = whole;
      bytes[i] = static_cast<std::byte>(value);
      const auto parsed = parse_safetensors(bytes, nullptr);
      if (parsed.ok()) read_everything(*parsed);
    }
  }
}

TEST(SafetensorsTest, RandomDamageIsReadOrRefused) {
  const auto whole = small_safetensors_file().bytes();
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 3000; ++trial) {
    auto bytes = whole;
    for (int i = 0; i < 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 128);
    }
    const auto parsed = parse_safetensors(bytes, nullptr);
    if (parsed.ok()) read_everything(*parsed);
  }
}

TEST(SafetensorsTest, ALongHeaderIsRefusedBeforeItIsRead) {
  const auto bytes = testing::ByteWriter().put(std::uint64_t{100'000'001}).put_text("{}").bytes();
  EXPECT_THAT(parse_safetensors(bytes, nullptr).status().message(),
              HasSubstr("expected a header of at most 100000000 bytes, got 100000001"));
  const auto short_file = testing::ByteWriter().put(std::uint64_t{50}).put_text("{}").bytes();
  EXPECT_THAT(parse_safetensors(short_file, nullptr).status().message(),
              HasSubstr("expected a header of 50 bytes, but the file ends after 2"));
}

TEST(SafetensorsTest, DeepNestingEndsAtItsFirstBracketTooMany) {
  EXPECT_EQ(status_of(std::string(1'000'000, '['), 0).code(), StatusCode::kDataLoss);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(status_of(objects, 0).code(), StatusCode::kDataLoss);
}

struct MalformedHeader {
  const char* name;
  const char* header;
  std::size_t data_bytes;
  const char* message;
};

void PrintTo(const MalformedHeader& malformed, std::ostream* out) {
  *out << malformed.name;
}

const MalformedHeader kMalformedHeaders[] = {
    {"NotJson", "{\"a\"", 0, "header: no valid JSON"},
    {"NotAnObject", "[]", 0, "did not expect an array"},
    {"BareNumber", "3", 0, "did not expect a number"},
    {"TrailingText", "{} {}", 0, "no valid JSON"},
    {"InvalidUtf8", "{\"\xff\":{}}", 0, "no valid JSON"},
    {"EntryNotAnObject", R"({"w":3})", 0, "did not expect a number at w"},
    {"DTypeMissing", R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4,
     "tensor w: dtype is missing"},
    {"ShapeMissing", R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, "shape is missing"},
    {"OffsetsMissing", R"({"w":{"dtype":"F32","shape":[1]}})", 4, "data_offsets are missing"},
    {"OneOffset", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4,
     "data_offsets are missing"},
    {"ThreeOffsets", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8,
     "more than two data_offsets"},
    {"ShapeTwice", R"({"w":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4,
     "shape stands twice"},
    {"NegativeExtent", R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
     "a negative number"},
    {"FractionalExtent", R"({"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4,
     "a fraction"},
    {"ExtentBeyond64Bits",
     R"({"w":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4,
     "a fraction"},
    {"UnknownKey", R"({"w":{"dtype":"F32","strides":[1]}})", 4, "strides is no key"},
    {"NineExtents", R"({"w":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
     "more than 8 extents"},
    {"WrongShape", R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})", 20,
     "tensor w: 2 x 3 of F32 does not take the 20 bytes of its offsets"},
    {"ProductOverflows",
     R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
     "does not take the 0 bytes"},
    {"OffsetsReversed", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
     "expected offsets within 4 bytes of data, got 4 to 0"},
    {"BeyondTheEnd", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
     "expected offsets within 4 bytes of data, got 0 to 8"},
    {"DuplicateName",
     R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "tensor w stands twice"},
    {"Overlap",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
     12, "tensor b: expected to begin at byte 8 of the data, got 4"},
    {"Hole",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "tensor b: expected to begin at byte 4 of the data, got 8"},
    {"BytesLeftOver", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
     "expected 4 bytes of data, got 5"},
};

class MalformedSafetensorsTest : public ::testing::TestWithParam<MalformedHeader> {};

TEST_P(MalformedSafetensorsTest, IsRefusedByName) {
  const Status status = status_of(GetParam().header, GetParam().data_bytes);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Headers, MalformedSafetensorsTest, ::testing::ValuesIn(kMalformedHeaders),
                         testing::kCaseName);

TEST(SafetensorsIndexTest, ReadsTheMap) {
  const auto files = parse_safetensors_index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})");
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->at("a"), "x.safetensors");
  EXPECT_EQ(files->at("b"), "y.safetensors");
}

TEST(SafetensorsIndexTest, RefusesWhatIsNoIndex) {
  for (const char* json : {"", "{", "[]", "{}", R"({"weight_map":[]})"}) {
    EXPECT_EQ(parse_safetensors_index(json).status().code(), StatusCode::kDataLoss) << json;
  }
  EXPECT_EQ(parse_safetensors_index(std::string(1'000'000, '[')).status().code(),
            StatusCode::kDataLoss);
}

TEST(SafetensorsIndexTest, AFileNameStaysInTheFolder) {
  for (const char* file : {R"("../x")", R"("/etc/passwd")", R"("a/b")", R"("")", R"("..")", "3",
                           R"({"deep":{"er":1}})"}) {
    const auto json = fmt::format(R"({{"weight_map":{{"w":{}}}}})", file);
    const Status status = parse_safetensors_index(json).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << json;
    EXPECT_THAT(status.message(), HasSubstr("for tensor w"));
  }
}

}  // namespace
}  // namespace pagoda
