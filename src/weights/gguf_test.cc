#include "weights/gguf.h"
#include "tests/support/case_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using testing::ByteWriter;
using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.5f * static_cast<float>(i % 37) - 7;
  return values;
}

GgufWriter small_file() {
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.set("llama.block_count", std::uint32_t{2});
  writer.set("llama.rope.freq_base", 10000.0f);
  writer.set("flag", true);
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "", "\xe2\x96\x81hi"});
  writer.set("tokenizer.ggml.scores", std::vector<float>{0, -1.5f, -2});
  writer.set("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 1, 1});
  writer.add_tensor("token_embd.weight", {3, 64}, WeightFormat::kQ8_0, ramp(192));
  writer.add_tensor("output_norm.weight", {64}, WeightFormat::kF32, ramp(64));
  writer.add_tensor("blk.0.ffn_up.weight", {5, 32}, WeightFormat::kQ4_1, ramp(160));
  return writer;
}

Result<std::shared_ptr<const GgufFile>> parse(const std::vector<std::byte>& bytes) {
  return GgufFile::parse(bytes, nullptr);
}

Status status_of(const std::vector<std::byte>& bytes) {
  return parse(bytes).status();
}

// Reads all that a file's readers can return. If a view leaves the file's bytes, the address
// sanitizer reports it.
void read_everything(const GgufFile& file) {
  for (const GgufEntry& entry : file.entries()) {
    (void)to_string(entry);
    (void)file.string(entry.key);
    (void)file.integer(entry.key);
    (void)file.number(entry.key);
    (void)file.boolean(entry.key);
    (void)file.integers(entry.key);
    (void)file.numbers(entry.key);
    (void)file.booleans(entry.key);
    const auto strings = file.strings(entry.key);
    if (!strings.ok()) continue;
    std::size_t total = 0;
    for (const std::string_view text : *strings) total += std::string(text).size();
    EXPECT_LE(total, entry.bytes.size());
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.format) testing::dequantize(*tensor.format, tensor.bytes);
  }
}

TEST(GgufTest, ReadsWhatWasWritten) {
  const auto bytes = small_file().bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const GgufFile& file = **parsed;
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(*file.string("general.architecture"), "llama");
  EXPECT_EQ(*file.integer("llama.block_count"), 2);
  EXPECT_EQ(*file.number("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(*file.number("llama.block_count"), 2.0);
  EXPECT_TRUE(*file.boolean("flag"));
  EXPECT_THAT(*file.strings("tokenizer.ggml.tokens"), ElementsAre("<s>", "", "\xe2\x96\x81hi"));
  EXPECT_THAT(*file.numbers("tokenizer.ggml.scores"), ElementsAre(0, -1.5f, -2));
  EXPECT_THAT(*file.integers("tokenizer.ggml.token_type"), ElementsAre(3, 1, 1));
  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor& embedding = file.tensors()[0];
  EXPECT_EQ(embedding.name, "token_embd.weight");
  EXPECT_EQ(embedding.shape, (Shape{3, 64}));
  EXPECT_EQ(embedding.format, WeightFormat::kQ8_0);
  EXPECT_EQ(
      testing::dequantize(WeightFormat::kQ8_0, embedding.bytes),
      testing::dequantize(WeightFormat::kQ8_0, testing::quantize(WeightFormat::kQ8_0, ramp(192))));
  EXPECT_EQ(testing::dequantize(WeightFormat::kF32, file.tensors()[1].bytes), ramp(64));
}

TEST(GgufTest, ReadsVersion2AndOtherAlignments) {
  auto writer = small_file();
  EXPECT_TRUE(status_of(writer.version(2).bytes()).ok());
  const auto parsed = parse(writer.alignment(256).bytes());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
}

TEST(GgufTest, ReadsEveryScalarType) {
  GgufWriter writer;
  writer.set("u8", std::uint8_t{200}).set("i8", std::int8_t{-100});
  writer.set("u16", std::uint16_t{60000}).set("i16", std::int16_t{-30000});
  writer.set("u32", std::uint32_t{4000000000}).set("i32", std::int32_t{-2000000000});
  writer.set("u64", std::uint64_t{1} << 62).set("i64", std::numeric_limits<std::int64_t>::min());
  writer.set("huge", std::numeric_limits<std::uint64_t>::max());
  writer.set("f32", 1.5f).set("f64", 2.5).set("no", false);
  writer.set("bools", std::vector<bool>{});
  const auto bytes = writer.bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const GgufFile& file = **parsed;
  EXPECT_EQ(*file.integer("u8"), 200);
  EXPECT_EQ(*file.integer("i8"), -100);
  EXPECT_EQ(*file.integer("u16"), 60000);
  EXPECT_EQ(*file.integer("i16"), -30000);
  EXPECT_EQ(*file.integer("u32"), 4000000000);
  EXPECT_EQ(*file.integer("i32"), -2000000000);
  EXPECT_EQ(*file.integer("u64"), std::int64_t{1} << 62);
  EXPECT_EQ(*file.integer("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(file.integer("huge").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(*file.number("huge"), 0x1p64);
  EXPECT_EQ(*file.number("f32"), 1.5);
  EXPECT_EQ(*file.number("f64"), 2.5);
  EXPECT_FALSE(*file.boolean("no"));
  EXPECT_TRUE(file.booleans("bools")->empty());
}

TEST(GgufTest, GettersNameTheKeyAndBothTypes) {
  const auto bytes = small_file().bytes();
  const auto file = *parse(bytes);
  const Status missing = file->integer("llama.nothing").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "[gguf] key llama.nothing is missing");
  const Status wrong = file->integer("general.architecture").status();
  EXPECT_EQ(wrong.code(), StatusCode::kDataLoss);
  EXPECT_EQ(wrong.message(), "[gguf] key general.architecture: expected an integer, got string");
  EXPECT_EQ(file->strings("tokenizer.ggml.scores").status().message(),
            "[gguf] key tokenizer.ggml.scores: expected an array of strings, got array of float32");
  EXPECT_EQ(file->string("tokenizer.ggml.tokens").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(file->integers("llama.block_count").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(*file->integer_or("llama.nothing", 7), 7);
  EXPECT_EQ(file->integer_or("general.architecture", 7).status().code(), StatusCode::kDataLoss);
}

TEST(GgufTest, DescribesEntriesInOneLine) {
  GgufWriter writer;
  writer.set("text", std::string(100, 'x') + "\n").set("n", std::int32_t{-3}).set("b", true);
  writer.set("f", 0.5f).set("list", std::vector<std::string>{"a", "b"});
  const auto bytes = writer.bytes();
  const auto file = *parse(bytes);
  EXPECT_EQ(to_string(file->entries()[0]), "\"" + std::string(60, 'x') + "...\"");
  EXPECT_EQ(to_string(file->entries()[1]), "-3");
  EXPECT_EQ(to_string(file->entries()[2]), "true");
  EXPECT_EQ(to_string(file->entries()[3]), "0.5");
  EXPECT_EQ(to_string(file->entries()[4]), "[2 x string]");
}

TEST(GgufTest, EveryTruncationIsAnError) {
  const auto whole = small_file().bytes();
  ASSERT_TRUE(status_of(whole).ok());
  // The padding after the last tensor (100 bytes of Q4_1) may be missing.
  const std::size_t padding = 128 - 100;
  for (std::size_t size = 0; size < whole.size() - padding; ++size) {
    // A copy of exactly that size, so that the address sanitizer detects reads past it.
    const std::vector<std::byte> part(whole.begin(), whole.begin() + size);
    const Status status = status_of(part);
    ASSERT_EQ(status.code(), StatusCode::kDataLoss) << size << ": " << status.message();
    ASSERT_THAT(status.message(), HasSubstr("[gguf]"));
  }
}

TEST(GgufTest, EveryChangedByteIsReadOrRefused) {
  const auto whole = small_file().bytes();
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[i] = static_cast<std::byte>(value);
      const auto parsed = parse(bytes);
      if (parsed.ok())
        read_everything(**parsed);
      else
        ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(GgufTest, RandomDamageIsReadOrRefused) {
  const auto whole = small_file().bytes();
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 3000; ++trial) {
    auto bytes = whole;
    bytes.resize(random() % (bytes.size() + 1));
    for (int i = 0; i < 4 && !bytes.empty(); ++i) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto parsed = parse(bytes);
    if (parsed.ok()) read_everything(**parsed);
  }
}

ByteWriter header(std::uint64_t num_tensors, std::uint64_t num_keys) {
  ByteWriter out;
  out.put_text("GGUF").put(std::uint32_t{3}).put(num_tensors).put(num_keys);
  return out;
}

ByteWriter one_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type,
                      std::uint64_t offset) {
  ByteWriter out = header(1, 0);
  out.put_string("w").put(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) out.put(dim);
  out.put(type).put(offset).pad_to(32);
  for (int i = 0; i < 64; ++i) out.put(std::uint64_t{0});
  return out;
}

struct MalformedGguf {
  const char* name;
  std::vector<std::byte> bytes;
  StatusCode code;
  const char* message;
};

std::vector<MalformedGguf> malformed_headers() {
  const std::vector<std::byte> tail(4096);
  const auto long_file = [&tail](ByteWriter out) { return out.put_bytes(tail).bytes(); };
  constexpr std::uint64_t kAbsurd = std::numeric_limits<std::uint64_t>::max();
  return {
      {"BadMagic", ByteWriter().put_text("GGML").put_bytes(tail).bytes(), StatusCode::kDataLoss,
       "expected the magic \"GGUF\", got \"GGML\""},
      {"Version1", ByteWriter().put_text("GGUF").put(1).put_bytes(tail).bytes(),
       StatusCode::kUnsupported, "expected version 2 or 3, got 1"},
      {"BigEndian", ByteWriter().put_text("GGUF").put(0x03000000).put_bytes(tail).bytes(),
       StatusCode::kUnsupported, "big-endian"},
      {"AbsurdTensors", long_file(header(kAbsurd, 0)), StatusCode::kDataLoss, "tensors are more"},
      {"AbsurdKeys", long_file(header(0, kAbsurd)), StatusCode::kDataLoss, "keys are more"},
      {"TooManyKeys", header(0, (1 << 16) + 1).put_bytes(std::vector<std::byte>(1 << 20)).bytes(),
       StatusCode::kDataLoss, "65537 keys are more"},
      {"AbsurdKeyLength", long_file(header(0, 1).put(kAbsurd)), StatusCode::kDataLoss,
       "expected key 1 of 1"},
      {"EmptyKey", long_file(header(0, 1).put_string("")), StatusCode::kDataLoss,
       "expected a name of 1 to 65535 bytes, got 0"},
      {"UnknownType", long_file(header(0, 1).put_string("k").put(13)), StatusCode::kDataLoss,
       "key k: 13 is no type"},
      {"AbsurdString", long_file(header(0, 1).put_string("k").put(8).put(kAbsurd - 7)),
       StatusCode::kDataLoss, "string 1 of 1 of key k"},
      {"AbsurdArray", long_file(header(0, 1).put_string("k").put(9).put(12).put(kAbsurd / 8 + 2)),
       StatusCode::kDataLoss, "the value of key k"},
      {"AbsurdStrings", long_file(header(0, 1).put_string("k").put(9).put(8).put(kAbsurd)),
       StatusCode::kDataLoss, "of key k"},
      {"NestedArray", long_file(header(0, 1).put_string("k").put(9).put(9).put(std::uint64_t{1})),
       StatusCode::kUnsupported, "arrays of arrays"},
      {"BadBool", long_file(header(0, 1).put_string("k").put(7).put(std::uint8_t{2})),
       StatusCode::kDataLoss, "expected a bool of 0 or 1, got 2"},
      {"DuplicateKey", GgufWriter().set("k", 1).set("other", 2).set("k", 3).bytes(),
       StatusCode::kDataLoss, "key k stands twice"},
      {"AlignmentNotAPowerOfTwo", GgufWriter().alignment(48).bytes(), StatusCode::kDataLoss,
       "general.alignment: expected a power of two of 8 to 1048576, got 48"},
      {"AlignmentZero", GgufWriter().set("general.alignment", 0u).bytes(), StatusCode::kDataLoss,
       "got 0"},
      {"AlignmentOfText", GgufWriter().set("general.alignment", "32").bytes(),
       StatusCode::kDataLoss, "expected an integer, got string"},
  };
}

std::vector<MalformedGguf> malformed_tensors() {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 32;
  const std::vector<float> values(32);
  return {
      {"NoDimensions", one_tensor({}, 0, 0).bytes(), StatusCode::kDataLoss,
       "tensor w: expected 1 to 4 dimensions, got 0"},
      {"FiveDimensions", one_tensor({1, 1, 1, 1, 1}, 0, 0).bytes(), StatusCode::kDataLoss, "got 5"},
      {"ZeroExtent", one_tensor({4, 0}, 0, 0).bytes(), StatusCode::kDataLoss, "0 is no extent"},
      {"ProductOverflows", one_tensor({kLarge, kLarge}, 0, 0).bytes(), StatusCode::kDataLoss,
       "is no extent"},
      {"ProductWraps", one_tensor({kLarge, kLarge, 4, 1}, 0, 0).bytes(), StatusCode::kDataLoss,
       "is no extent"},
      {"PartOfABlock", one_tensor({48}, 8, 0).bytes(), StatusCode::kDataLoss,
       "expected rows of whole Q8_0 blocks of 32, got 48 values"},
      {"OffsetNotAligned", one_tensor({4}, 0, 16).bytes(), StatusCode::kDataLoss,
       "expected an offset that is a multiple of 32, got 16"},
      {"OffsetBeyondTheEnd", one_tensor({4}, 0, 1 << 20).bytes(), StatusCode::kDataLoss,
       "tensor w: expected 16 bytes at offset 1048576, but the data has 512"},
      {"OffsetWraps", one_tensor({4}, 0, ~std::uint64_t{31}).bytes(), StatusCode::kDataLoss,
       "but the data has 512"},
      {"TooLong", one_tensor({64, 64}, 0, 0).bytes(), StatusCode::kDataLoss,
       "expected 16384 bytes at offset 0"},
      {"UnknownTypeBeyondTheEnd", one_tensor({64, 64}, 21, 1 << 20).bytes(), StatusCode::kDataLoss,
       "tensor w"},
      {"DuplicateTensor",
       GgufWriter()
           .add_tensor("w", {32}, WeightFormat::kF32, values)
           .add_tensor("w", {32}, WeightFormat::kF32, values)
           .bytes(),
       StatusCode::kDataLoss, "tensor w stands twice"},
  };
}

void PrintTo(const MalformedGguf& malformed, std::ostream* out) {
  *out << malformed.name;
}

class MalformedTest : public ::testing::TestWithParam<MalformedGguf> {};

TEST_P(MalformedTest, IsRefusedByName) {
  const Status status = status_of(GetParam().bytes);
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Headers, MalformedTest, ::testing::ValuesIn(malformed_headers()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Tensors, MalformedTest, ::testing::ValuesIn(malformed_tensors()),
                         testing::kCaseName);

TEST(GgufTest, OverlappingTensorsAreRefused) {
  ByteWriter out = header(2, 0);
  for (const char* name : {"a", "b"}) {
    out.put_string(name).put(1).put(std::uint64_t{16}).put(0);
    out.put(std::uint64_t{name[0] == 'a' ? 0u : 32u});
  }
  out.pad_to(32);
  for (int i = 0; i < 64; ++i) out.put(std::uint64_t{0});
  const Status status = status_of(out.bytes());
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("tensors a and b overlap"));
}

TEST(GgufTest, ATypeThatNothingReadsIsNoErrorYet) {
  const auto bytes = one_tensor({256}, 21, 0).bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_FALSE((*parsed)->tensors()[0].format.has_value());
  EXPECT_EQ(gguf_tensor_type_name((*parsed)->tensors()[0].type_id), "IQ3_S");
  EXPECT_EQ(gguf_tensor_type_name(77), "type 77");
  EXPECT_EQ(gguf_tensor_type_name(4), "type 4");
}

}  // namespace
}  // namespace pagoda
