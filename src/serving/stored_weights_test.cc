#include "serving/stored_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint.h"

namespace pagoda {
namespace {

using ::testing::MatchesRegex;
using testing::TemporaryFolder;

const std::vector<float> kValues{1, 2, 3, 4, 5, 6, 7, 8};

StoredWeights folder_with(const std::string& config, const Shape& shape,
                          const std::vector<float>& values) {
  const TemporaryFolder folder;
  testing::SafetensorsWriter()
      .add("a.weight", shape, WeightFormat::kF32, values)
      .add("b.weight", {8}, WeightFormat::kF16, kValues)
      .write(folder / "model.safetensors");
  std::ofstream(folder / "config.json") << config;
  return read_stored_weights(Checkpoint::open(folder.path()).value());
}

TEST(StoredWeightsTest, TellsOfAFolder) {
  const StoredWeights weights = folder_with("{}", {2, 4}, kValues);
  EXPECT_FALSE(weights.is_gguf);
  EXPECT_EQ(weights.num_parameters, 16);
  EXPECT_GT(weights.num_bytes, 48);
  EXPECT_GT(weights.modified_ns, 0);
}

TEST(StoredWeightsTest, TheDigestTellsModelsApartAndNotTheirCopies) {
  const std::string digest = folder_with("{}", {2, 4}, kValues).digest;
  EXPECT_THAT(digest, MatchesRegex("[0-9a-f]{64}"));
  EXPECT_EQ(folder_with("{}", {2, 4}, kValues).digest, digest);
  EXPECT_NE(folder_with("{ }", {2, 4}, kValues).digest, digest);
  EXPECT_NE(folder_with("{}", {4, 2}, kValues).digest, digest);
  EXPECT_NE(folder_with("{}", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 9}).digest, digest);
}

TEST(StoredWeightsTest, AGgufFileHasADigestToo) {
  std::vector<std::string> digests;
  for (const float last : {1.0F, 1.0F, 2.0F}) {
    const TemporaryFolder folder;
    testing::GgufWriter writer;
    writer.set("general.architecture", "llama");
    writer.add_tensor("a.weight", {1, 2}, WeightFormat::kF32, std::vector<float>{0, last});
    testing::write_file(folder / "a.gguf", writer.bytes());
    digests.push_back(read_stored_weights(Checkpoint::open(folder / "a.gguf").value()).digest);
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_NE(digests[0], digests[2]);
}

}  // namespace
}  // namespace pagoda
