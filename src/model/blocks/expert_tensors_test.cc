// The matrices of a mixture's experts are found in each of the forms that checkpoints have.
#include "model/blocks/expert_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "quant/tensor_rows.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

constexpr int kExperts = 3, kRows = 2, kCols = 4;

ExpertsSpec gate_up_spec() {
  const auto part = [](const std::string& module) {
    return ExpertPart{.before = "mlp.experts.",
                      .behind = "." + module,
                      .stacked = {"mlp.experts." + module, "mlp.switch_mlp." + module},
                      .rows = kRows};
  };
  return {.role = ExpertRole::kGateUp,
          .num_experts = kExperts,
          .parts = {part("gate_proj"), part("up_proj")},
          .joined = "mlp.experts.gate_up_proj",
          .cols = kCols};
}

// Returns the numbers of a part of an expert. All numbers of a checkpoint differ.
std::vector<float> numbers_of(int expert, int part) {
  std::vector<float> numbers(std::size_t{kRows} * kCols);
  std::iota(numbers.begin(), numbers.end(),
            static_cast<float>((2 * expert + part) * kRows * kCols));
  return numbers;
}

// Returns the numbers of all experts: of one part, or of both in turns.
std::vector<float> numbers_of_all(const std::vector<int>& parts) {
  std::vector<float> all;
  for (int expert = 0; expert < kExperts; ++expert) {
    for (const int part : parts) {
      const std::vector<float> numbers = numbers_of(expert, part);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  }
  return all;
}

void add(testing::SafetensorsWriter& writer, const std::string& name, const Shape& shape,
         const std::vector<float>& values) {
  writer.add(name, shape, WeightFormat::kF32, values);
}

void add_separate(testing::SafetensorsWriter& writer, int first_missing = kExperts) {
  for (int expert = 0; expert < first_missing; ++expert) {
    const std::string prefix = "mlp.experts." + std::to_string(expert);
    add(writer, prefix + ".gate_proj.weight", {kRows, kCols}, numbers_of(expert, 0));
    add(writer, prefix + ".up_proj.weight", {kRows, kCols}, numbers_of(expert, 1));
  }
}

Result<std::vector<HostTensor>> find(testing::SafetensorsWriter& writer,
                                     const testing::TemporaryFolder& folder,
                                     const ExpertsSpec& spec = gate_up_spec()) {
  writer.write(folder / "model.safetensors");
  return find_experts(*Checkpoint::open(folder.path()), spec);
}

void expect_all(testing::SafetensorsWriter& writer, const ExpertsSpec& spec = gate_up_spec()) {
  const testing::TemporaryFolder folder;
  const Result<std::vector<HostTensor>> found = find(writer, folder, spec);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2 * kExperts);
  for (int i = 0; i < 2 * kExperts; ++i) {
    const HostTensor& matrix = (*found)[i];
    ASSERT_EQ(matrix.shape, (Shape{kRows, kCols}));
    std::vector<float> numbers(std::size_t{kRows} * kCols);
    for (int row = 0; row < kRows; ++row) read_row(matrix, row, numbers.data() + row * kCols);
    EXPECT_EQ(numbers, numbers_of(i / 2, i % 2)) << i;
  }
}

TEST(ExpertTensorsTest, AMatrixForEachExpert) {
  testing::SafetensorsWriter writer;
  add_separate(writer);
  expect_all(writer);
}

TEST(ExpertTensorsTest, ATensorForAllExperts) {
  for (const std::string prefix : {"mlp.experts.", "mlp.switch_mlp."}) {
    for (const char* ending : {".weight", ""}) {
      testing::SafetensorsWriter writer;
      add(writer, prefix + "gate_proj" + ending, {kExperts, kRows, kCols}, numbers_of_all({0}));
      add(writer, prefix + "up_proj" + ending, {kExperts, kRows, kCols}, numbers_of_all({1}));
      expect_all(writer);
    }
  }
}

TEST(ExpertTensorsTest, ATensorForAllPartsOfAllExperts) {
  testing::SafetensorsWriter writer;
  add(writer, "mlp.experts.gate_up_proj", {kExperts, 2 * kRows, kCols}, numbers_of_all({0, 1}));
  expect_all(writer);
}

// Returns the numbers of all experts as [experts, cols, 2 * rows]. A part's row is a column there: of
// its own half, or of every second one.
std::vector<float> transposed_numbers(bool are_in_turns) {
  std::vector<float> all(std::size_t{2} * kExperts * kRows * kCols);
  for (int expert = 0; expert < kExperts; ++expert) {
    for (const int part : {0, 1}) {
      const std::vector<float> numbers = numbers_of(expert, part);
      for (int row = 0; row < kRows; ++row) {
        const int column = are_in_turns ? 2 * row + part : kRows * part + row;
        for (int k = 0; k < kCols; ++k)
          all[(expert * kCols + k) * 2 * kRows + column] = numbers[row * kCols + k];
      }
    }
  }
  return all;
}

TEST(ExpertTensorsTest, ATransposedTensor) {
  for (const bool are_in_turns : {false, true}) {
    ExpertsSpec spec = gate_up_spec();
    spec.is_transposed = true;
    spec.is_interleaved = are_in_turns;
    testing::SafetensorsWriter writer;
    add(writer, "mlp.experts.gate_up_proj", {kExperts, kCols, 2 * kRows},
        transposed_numbers(are_in_turns));
    expect_all(writer, spec);
    // A name that ends in ".weight" is GGUF's or MLX's, which have matrices as they are.
    testing::SafetensorsWriter usual;
    add(usual, "mlp.experts.gate_proj.weight", {kExperts, kRows, kCols}, numbers_of_all({0}));
    add(usual, "mlp.experts.up_proj.weight", {kExperts, kRows, kCols}, numbers_of_all({1}));
    expect_all(usual, spec);
  }
}

TEST(ExpertTensorsTest, ExtentsSayThatATensorIsNotTransposed) {
  ExpertsSpec spec = gate_up_spec();
  spec.is_transposed = true;
  testing::SafetensorsWriter apart;
  add(apart, "mlp.experts.gate_proj", {kExperts, kRows, kCols}, numbers_of_all({0}));
  add(apart, "mlp.experts.up_proj", {kExperts, kRows, kCols}, numbers_of_all({1}));
  expect_all(apart, spec);
}

TEST(ExpertTensorsTest, BiasesLieAsTheirMatricesDo) {
  // Bias `row` of an expert's part is 100 expert + 10 part + row.
  const auto bias = [](int expert, int part, int row) {
    return static_cast<float>(100 * expert + 10 * part + row);
  };
  const auto expect_biases = [&](testing::SafetensorsWriter& writer, bool are_in_turns) {
    const testing::TemporaryFolder folder;
    writer.write(folder / "model.safetensors");
    ExpertsSpec spec = gate_up_spec();
    spec.has_bias = true;
    spec.is_interleaved = are_in_turns;
    const auto found = find_expert_biases(*Checkpoint::open(folder.path()), spec);
    ASSERT_TRUE(found.ok()) << found.status().message();
    for (int part = 0; part < 2; ++part) {
      ASSERT_EQ((*found)[part].shape, (Shape{kExperts, kRows}));
      for (int expert = 0; expert < kExperts; ++expert) {
        std::vector<float> row(kRows);
        read_row((*found)[part], expert, row.data());
        for (int i = 0; i < kRows; ++i) EXPECT_EQ(row[i], bias(expert, part, i));
      }
    }
  };
  std::vector<float> halves, turns, gates, ups;
  for (int expert = 0; expert < kExperts; ++expert) {
    for (const int part : {0, 1}) {
      for (int row = 0; row < kRows; ++row) {
        halves.push_back(bias(expert, part, row));
        (part == 0 ? gates : ups).push_back(bias(expert, part, row));
      }
    }
    for (int row = 0; row < kRows; ++row) {
      for (const int part : {0, 1}) turns.push_back(bias(expert, part, row));
    }
  }
  for (const bool are_in_turns : {false, true}) {
    testing::SafetensorsWriter joined;
    add(joined, "mlp.experts.gate_up_proj_bias", {kExperts, 2 * kRows},
        are_in_turns ? turns : halves);
    expect_biases(joined, are_in_turns);
    testing::SafetensorsWriter apart;
    add(apart, "mlp.experts.gate_proj.bias", {kExperts, kRows}, gates);
    add(apart, "mlp.experts.up_proj.bias", {kExperts, kRows}, ups);
    expect_biases(apart, are_in_turns);
  }
}

TEST(ExpertTensorsTest, WhatIsMissingOrHasAWrongShapeIsNamed) {
  const testing::TemporaryFolder folder;
  testing::SafetensorsWriter missing;
  add_separate(missing, kExperts - 1);
  Status status = find(missing, folder).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("mlp.experts.2.gate_proj.weight"));

  testing::SafetensorsWriter fewer;
  add(fewer, "mlp.experts.gate_up_proj", {kExperts - 1, 2 * kRows, kCols},
      std::vector<float>(std::size_t{kExperts - 1} * 2 * kRows * kCols));
  status = find(fewer, folder).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              HasSubstr("mlp.experts.gate_up_proj: expected 3 x 4 x 4, got 2 x 4 x 4"));

  ExpertsSpec spec = gate_up_spec();
  spec.is_transposed = spec.is_interleaved = true;
  testing::SafetensorsWriter usual;
  add(usual, "mlp.experts.gate_up_proj.weight", {kExperts, 2 * kRows, kCols},
      numbers_of_all({0, 1}));
  EXPECT_THAT(find(usual, folder, spec).status().message(),
              HasSubstr("mlp.experts.gate_up_proj.weight: F32 is not supported where gates and up "
                        "parts take turns"));
  spec.has_bias = true;
  EXPECT_THAT(find_expert_biases(*Checkpoint::open(folder.path()), spec).status().message(),
              HasSubstr("tensor mlp.experts.gate_proj.bias is missing"));
}

TEST(ExpertTensorsTest, AModuleIsFoundByItsName) {
  const ExpertsSpec spec = gate_up_spec();
  const auto place_of = [&](std::string_view module) {
    const std::optional<ExpertPlace> place = find_expert(spec, module);
    return place ? std::pair(place->part, place->expert) : std::pair(-2, -2);
  };
  EXPECT_EQ(place_of("mlp.experts.gate_up_proj"), std::pair(-1, -1));
  EXPECT_EQ(place_of("mlp.experts.gate_up_proj_blocks"), std::pair(-1, -1));
  EXPECT_EQ(place_of("mlp.experts.gate_up_proj_bias"), std::pair(-1, -1));
  EXPECT_EQ(place_of("mlp.experts.up_proj"), std::pair(1, -1));
  EXPECT_EQ(place_of("mlp.experts.2.gate_proj"), std::pair(0, 2));
  for (const char* unknown :
       {"mlp.experts.3.gate_proj", "mlp.experts.-1.gate_proj", "mlp.experts.02.gate_proj",
        "mlp.experts..gate_proj", "mlp.experts.1x.gate_proj", "mlp.experts.1.down_proj", ""}) {
    EXPECT_EQ(place_of(unknown), std::pair(-2, -2)) << unknown;
  }
}

}  // namespace
}  // namespace pagoda
