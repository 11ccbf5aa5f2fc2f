// A layer of Gemma 4 with an MLP and experts: the names that checkpoints have for its tensors, and
// what is said of one that is missing or has a wrong shape.
#include "model/blocks/parallel_mlp_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "model/blocks/expert_tensors.h"
#include "tests/support/case_name.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using testing::SafetensorsWriter;
using testing::TemporaryFolder;

const std::string kLayer = "model.layers.0.";

Checkpoint open_whole() {
  return *Checkpoint::open(testing::source_path("tests/golden/data/tiny-gemma4-moe"));
}

void add(SafetensorsWriter& writer, const std::string& name, const Shape& shape,
         const HostTensor& source, std::vector<std::byte> bytes) {
  writer.add_raw(name, shape, traits_of(source.format).name, std::move(bytes));
}

// A layer's MLPs of the tiny checkpoint, under its config.
struct SourceLayer {
  Checkpoint checkpoint = open_whole();
  ModelConfig config = read_model_config(checkpoint).value();
  ParallelMlpConfig mlp = std::get<ParallelMlpConfig>(config.layers.front().mlp);
  BlockSpec spec = block_spec(config, mlp, 0);
};

struct SpoiltTensor {
  const char* name;
  const char* tensor;  // after "model.layers.0."
  Shape shape;         // in place of its own; rank 0: it is missing
  const char* message;
};

void PrintTo(const SpoiltTensor& spoilt, std::ostream* out) {
  *out << spoilt.name;
}

Status load_spoilt(const SpoiltTensor& spoilt) {
  const SourceLayer source;
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  for (const std::string& name : source.checkpoint.names()) {
    const HostTensor tensor = *source.checkpoint.tensor(name);
    const bool is_spoilt = name == kLayer + spoilt.tensor;
    if (!name.starts_with(kLayer) || (is_spoilt && spoilt.shape.rank() == 0)) continue;
    const Shape shape = is_spoilt ? spoilt.shape : tensor.shape;
    const auto size = packed_bytes(tensor.format, shape.num_elements());
    std::vector<std::byte> bytes(tensor.bytes.begin(), tensor.bytes.end());
    bytes.resize(static_cast<std::size_t>(size));
    add(writer, name, shape, tensor, std::move(bytes));
  }
  writer.write(folder / "model.safetensors");
  const Checkpoint checkpoint = *Checkpoint::open(folder.path());
  const std::unique_ptr<Exec> exec = make_exec({.backend = Backend::kReference}).value();
  return load_block({.exec = *exec,
                     .checkpoint = checkpoint,
                     .config = source.config,
                     .spec = source.spec},
                    source.mlp)
      .status();
}

TEST(ParallelMlpBlockTest, AWholeLayerLoads) {
  const Status status = load_spoilt({.name = "None", .tensor = "none", .shape = {}, .message = ""});
  EXPECT_TRUE(status.ok()) << status.message();
}

class ParallelMlpBlockRefuses : public ::testing::TestWithParam<SpoiltTensor> {};

TEST_P(ParallelMlpBlockRefuses, ByName) {
  const Status status = load_spoilt(GetParam());
  EXPECT_EQ(status.code(),
            GetParam().shape.rank() == 0 ? StatusCode::kNotFound : StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(kLayer + GetParam().tensor));
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, ParallelMlpBlockRefuses,
    ::testing::Values(
        SpoiltTensor{"NoRouter", "router.proj.weight", {}, ""},
        SpoiltTensor{"NoRouterScale", "router.scale", {}, ""},
        SpoiltTensor{"NoExpertScales", "router.per_expert_scale", {}, ""},
        SpoiltTensor{"NoExpertsNorm", "pre_feedforward_layernorm_2.weight", {}, ""},
        SpoiltTensor{"NoNormBehindTheMlp", "post_feedforward_layernorm_1.weight", {}, ""},
        SpoiltTensor{"NoNormBehindExperts", "post_feedforward_layernorm_2.weight", {}, ""},
        SpoiltTensor{"NoMlp", "mlp.up_proj.weight", {}, ""},
        SpoiltTensor{
            "RouterOfOthers", "router.proj.weight", {5, 64}, "expected 6 x 64, got 5 x 64"},
        SpoiltTensor{"LongRouterScale", "router.scale", {65}, "expected 64, got 65"},
        SpoiltTensor{"FewExpertScales", "router.per_expert_scale", {5}, "expected 6, got 5"},
        SpoiltTensor{
            "ShortNorm", "pre_feedforward_layernorm_2.weight", {32}, "expected 64, got 32"},
        SpoiltTensor{"FewExperts",
                     "experts.gate_up_proj",
                     {5, 96, 64},
                     "expected 6 x 96 x 64, got 5 x 96 x 64"},
        SpoiltTensor{"NarrowExperts",
                     "experts.down_proj",
                     {6, 64, 47},
                     "expected 6 x 64 x 48, got 6 x 64 x 47"}),
    testing::kCaseName);

// MLX's folders have gate and up parts apart, in modules of their own.
TEST(ParallelMlpBlockTest, ExpertsAreFoundByMlxsNames) {
  const SourceLayer source;
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  for (const ExpertsSpec& spec : source.spec.experts) {
    const std::vector<HostTensor> matrices = *find_experts(source.checkpoint, spec);
    const std::size_t num_parts = spec.parts.size();
    for (std::size_t part = 0; part < num_parts; ++part) {
      std::vector<std::byte> bytes;
      for (std::size_t i = part; i < matrices.size(); i += num_parts)
        bytes.insert(bytes.end(), matrices[i].bytes.begin(), matrices[i].bytes.end());
      const char* const module = num_parts == 1 ? "down_proj" : part == 0 ? "gate_proj" : "up_proj";
      add(writer, kLayer + "experts.switch_glu." + module + ".weight",
          {spec.num_experts, spec.parts[part].rows, spec.cols}, matrices.front(), std::move(bytes));
    }
  }
  writer.write(folder / "model.safetensors");
  const Checkpoint mlx = *Checkpoint::open(folder.path());
  for (const ExpertsSpec& spec : source.spec.experts) {
    const auto expected = *find_experts(source.checkpoint, spec);
    const auto found = find_experts(mlx, spec);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_EQ(found->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ((*found)[i].shape, expected[i].shape);
      EXPECT_TRUE(std::ranges::equal((*found)[i].bytes, expected[i].bytes)) << i;
    }
  }
}

}  // namespace
}  // namespace pagoda
