// Promises of attention beyond ops_test: no bit depends on the places of entries or the ends of
// chunks.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "ops/attention/attention_cases.h"

namespace pagoda {
namespace {

std::vector<AttentionShape> shapes() {
  const std::vector<AttentionSeq> seqs = {{70, 1}, {5, 1}, {97, 60}, {301, 40}};
  const AttentionShape plain{.seqs = seqs, .heads = 6, .kv_heads = 2, .head_dim = 24};
  AttentionShape windowed = plain;
  windowed.window = 45;
  AttentionShape everything = windowed;
  everything.soft_cap = 5;
  everything.has_sinks = true;
  everything.formats = {};
  AttentionShape of_whole_vectors = windowed;
  of_whole_vectors.head_dim = 64;
  return {plain, windowed, everything, of_whole_vectors};
}

class AttentionTest : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<Exec> exec_ = make_exec({.backend = GetParam(), .num_threads = 2}).value();
};

TEST_P(AttentionTest, BlockSizesAndBlockIdsChangeNoBit) {
  for (AttentionShape shape : shapes()) {
    const std::vector<int> tokens = all_tokens(make_attention_case(shape));
    const std::vector<float> expected = run_attention(*exec_, shape, tokens);
    for (const int block_size : {1, 8, 16, 32, 400}) {
      for (const std::uint32_t seed : {0u, 2u, 3u}) {
        shape.block_size = block_size;
        shape.layout_seed = seed;
        ASSERT_TRUE(same_bits(run_attention(*exec_, shape, tokens), expected))
            << block_size << " " << seed;
      }
    }
  }
}

TEST_P(AttentionTest, ChunkBordersChangeNoBit) {
  for (const AttentionShape& shape : shapes()) {
    const std::vector<int> tokens = all_tokens(make_attention_case(shape));
    const std::vector<float> expected = run_attention(*exec_, shape, tokens);
    for (const std::size_t chunk :
         {std::size_t{1}, std::size_t{7}, std::size_t{16}, std::size_t{33}}) {
      std::vector<float> actual;
      for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
        const auto part = std::span(tokens).subspan(begin, std::min(chunk, tokens.size() - begin));
        const std::vector<float> rows = run_attention(*exec_, shape, part);
        actual.insert(actual.end(), rows.begin(), rows.end());
      }
      ASSERT_TRUE(same_bits(actual, expected)) << "chunks of " << chunk;
    }
  }
}

// Takes 1 to 9 query heads per kv head: 8 are the most for which cpu has code for decodes.
TEST_P(AttentionTest, ADecodeHasTheBitsOfAPrompt) {
  for (int group = 1; group <= 9; ++group) {
    const AttentionShape shape{.seqs = {{280, 280}},
                               .heads = 2 * group,
                               .kv_heads = 2,
                               .head_dim = 32 * (1 + group % 3),
                               .window = group % 2 == 0 ? 37 : 0};
    const std::vector<float> expected =
        run_attention(*exec_, shape, all_tokens(make_attention_case(shape)));
    const std::size_t row = expected.size() / 280;
    for (const int token : {0, 14, 15, 40, 255, 256, 279}) {
      EXPECT_TRUE(same_bits(run_attention(*exec_, shape, std::vector<int>{token}),
                            std::span(expected).subspan(token * row, row)))
          << "group " << group << ", token " << token;
    }
  }
}

TEST_P(AttentionTest, OneKeyIsItsValue) {
  const AttentionShape shape{.seqs = {{1, 1}}, .head_dim = 32, .magnitude = 50};
  const std::vector<int> tokens = {0};
  EXPECT_TRUE(same_bits(run_attention(*exec_, shape, tokens), attention_inputs(shape).values));
}

TEST_P(AttentionTest, AWindowOfOneSeesItsOwnEntryOnly) {
  const AttentionShape shape{.seqs = {{90, 90}}, .head_dim = 16, .window = 1};
  const std::vector<int> tokens = all_tokens(make_attention_case(shape));
  EXPECT_TRUE(same_bits(run_attention(*exec_, shape, tokens), attention_inputs(shape).values));
}

// The chunks end at odd and at even positions, because pairs of positions are multiplied together.
TEST_P(AttentionTest, ALaterEntryOfTheSameChunkIsNotSeen) {
  for (AttentionShape shape : shapes()) {
    shape.seqs = {{40, 40}, {39, 20}, {2, 2}};
    const std::vector<int> tokens = all_tokens(make_attention_case(shape));
    const std::vector<float> expected = run_attention(*exec_, shape, tokens);
    shape.ends_in_nan = true;
    const std::vector<float> actual = run_attention(*exec_, shape, tokens);
    const std::size_t row = expected.size() / tokens.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool is_last = i == 39 || i == 59 || i == 61;
      ASSERT_EQ(same_bits(std::span(actual).subspan(i * row, row),
                          std::span(expected).subspan(i * row, row)),
                !is_last)
          << "token " << i;
    }
  }
}

TEST_P(AttentionTest, AWindowAsLongAsTheContextChangesNoBit) {
  AttentionShape shape{.seqs = {{90, 90}}, .heads = 2, .head_dim = 16};
  const std::vector<int> tokens = all_tokens(make_attention_case(shape));
  const std::vector<float> expected = run_attention(*exec_, shape, tokens);
  shape.window = 90;
  EXPECT_TRUE(same_bits(run_attention(*exec_, shape, tokens), expected));
}

// Returns the backends that are built here.
std::vector<Backend> backends_here() {
  std::vector<Backend> here;
  for (const Backend backend : kBackends) {
    if (backend_is_here(backend)) here.push_back(backend);
  }
  return here;
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest, ::testing::ValuesIn(backends_here()),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

}  // namespace
}  // namespace pagoda
