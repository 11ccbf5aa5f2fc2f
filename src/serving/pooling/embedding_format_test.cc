#include "serving/pooling/embedding_format.h"

#include <gtest/gtest.h>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

TEST(EmbeddingFormat, AGgufFileSaysItByNumber) {
  testing::TemporaryFolder folder;
  const Pooling poolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};
  for (std::uint32_t type = 0; type < 5; ++type) {
    testing::GgufWriter writer;
    writer.set("general.architecture", "llama").set("llama.pooling_type", type);
    testing::write_file(folder / "a.gguf", writer.bytes());
    const auto format = read_embedding_format(*Checkpoint::open(folder / "a.gguf"));
    ASSERT_TRUE(format.ok()) << format.status().message();
    EXPECT_EQ(format->has_value(), type > 0 && type < 4);
    if (*format) {
      EXPECT_EQ((*format)->pooling, poolings[type]);
      EXPECT_EQ(gguf_pooling_type(poolings[type]), type);
    }
  }
  testing::GgufWriter writer;
  writer.set("general.architecture", "llama").set("llama.pooling_type", 5u);
  testing::write_file(folder / "a.gguf", writer.bytes());
  EXPECT_EQ(read_embedding_format(*Checkpoint::open(folder / "a.gguf")).status().code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pagoda
