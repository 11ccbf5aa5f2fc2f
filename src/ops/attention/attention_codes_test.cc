// The cpu attention on codes, on every instruction set of this machine: a row's bits do not depend
// on other rows, and both paths are near the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "backend/backend.h"
#include "backend/cpu/cpu_exec.h"
#include "ops/attention/attention_cases.h"
#include "ops/attention/cpu/attention_path.h"
#include "ops/kv_case.h"
#include "ops/reference_outputs.h"

namespace pagoda {
namespace {

constexpr std::uint32_t kAttentionCodesSeed = 20261125;

// The formats of a cache, and the path on which it is read.
struct Way {
  KvFormats formats;
  AttentionPath path;
};

Tensor attend_decoded(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                      const AttentionArgs& args) {
  return cpu::attention_on(AttentionPath::kDecoded, false, exec, q, view, batch, args);
}

Tensor attend_without_vnni(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                           const AttentionArgs& args) {
  return cpu::attention_on(AttentionPath::kCodes, false, exec, q, view, batch, args);
}

// Returns all formats that have codes, alone or beside floats: each on its path and on kDecoded.
std::vector<Way> ways(std::int64_t head_dim) {
  std::vector<Way> all;
  for (const KvFormats& formats : kKvCaseFormats) {
    const AttentionPath path = cpu::attention_path(formats, head_dim);
    if (path == AttentionPath::kFloats || !fit(formats, head_dim)) continue;
    all.push_back({formats, path});
    if (path != AttentionPath::kDecoded) all.push_back({formats, AttentionPath::kDecoded});
  }
  return all;
}

void set(AttentionShape& shape, const Way& way) {
  shape.formats = way.formats;
  shape.attend = way.path == AttentionPath::kDecoded ? attend_decoded : attention;
}

std::string describe(const AttentionShape& shape, const Way& way) {
  return make_attention_case(shape).description + ", " + std::string(attention_path_name(way.path));
}

class AttentionCodes : public ::testing::TestWithParam<CpuIsa> {
 protected:
  static std::unique_ptr<Exec> make(int num_threads) {
    return make_exec({.backend = Backend::kCpu, .num_threads = num_threads, .cpu_isa = GetParam()})
        .value();
  }

  // Expects that the rows of `tokens`, computed without the others, have their bits in `expected`,
  // which has all rows.
  void expect_rows(const AttentionShape& shape, std::span<const int> tokens,
                   std::span<const float> expected) {
    const auto row = static_cast<std::size_t>(shape.heads * shape.head_dim);
    const std::vector<float> rows = run_attention(*execs_[random_() % 3], shape, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_TRUE(
          same_bits(std::span(rows).subspan(i * row, row), expected.subspan(tokens[i] * row, row)))
          << "token " << tokens[i] << " of " << tokens.size();
    }
  }

  std::mt19937 random_{kAttentionCodesSeed};
  std::unique_ptr<Exec> execs_[3] = {make(1), make(2), make(3)};
};

// Returns shapes with several ranges of positions. Some have few enough heads per kv head for
// FewRows, others have more. Some head sizes are whole vectors and others are not.
std::vector<AttentionShape> random_shapes(std::mt19937& random) {
  std::vector<AttentionShape> shapes;
  for (const int head_dim : {16, 24, 64, 80, 96, 128}) {
    const int kv_heads = 1 + static_cast<int>(random() % 3);
    const int group = 1 + static_cast<int>(random() % 9);
    shapes.push_back({.seqs = {{300 + static_cast<int>(random() % 300), 40}, {97, 60}, {5, 5}},
                      .heads = kv_heads * group,
                      .kv_heads = kv_heads,
                      .head_dim = head_dim,
                      .window = random() % 2 ? 0 : 1 + static_cast<int>(random() % 300),
                      .soft_cap = random() % 2 ? 0.0f : 20.0f,
                      .has_sinks = random() % 2 == 0});
  }
  return shapes;
}

TEST_P(AttentionCodes, ARowsBitsDependOnNothingElse) {
  for (AttentionShape shape : random_shapes(random_)) {
    for (const Way& way : ways(shape.head_dim)) {
      set(shape, way);
      SCOPED_TRACE(describe(shape, way));
      shape.block_size = 16;
      shape.layout_seed = 1;
      const std::vector<int> tokens = all_tokens(make_attention_case(shape));
      const std::vector<float> expected = run_attention(*execs_[0], shape, tokens);
      for (const int block_size : {1, 5, 16, 32, 400}) {
        shape.block_size = block_size;
        shape.layout_seed = random_() % 3;
        expect_rows(shape, tokens, expected);
        const std::size_t begin = random_() % tokens.size();
        const std::size_t count = 1 + random_() % (tokens.size() - begin);
        expect_rows(shape, std::span(tokens).subspan(begin, count), expected);
        for (int i = 0; i < 2; ++i) {
          const int token = tokens[random_() % tokens.size()];
          expect_rows(shape, std::span(&token, 1), expected);
        }
      }
    }
  }
}

// On AVX2, products are summed by AVX-VNNI if the machine has it, else by two instructions.
TEST_P(AttentionCodes, SumsAreTheSameWithoutVnni) {
  for (AttentionShape shape : random_shapes(random_)) {
    for (const Way& way : ways(shape.head_dim)) {
      if (way.path != AttentionPath::kCodes) continue;
      set(shape, way);
      SCOPED_TRACE(describe(shape, way));
      const std::vector<int> tokens = all_tokens(make_attention_case(shape));
      const std::vector<float> expected = run_attention(*execs_[1], shape, tokens);
      shape.attend = attend_without_vnni;
      EXPECT_TRUE(same_bits(run_attention(*execs_[2], shape, tokens), expected));
    }
  }
}

TEST_P(AttentionCodes, BothPathsAreNearTheReference) {
  for (AttentionShape shape : attention_shapes()) {
    if (shape.is_large || shape.formats != both(KvFormat::kBFloat16)) continue;
    for (const Way& way : ways(shape.head_dim)) {
      set(shape, {.formats = way.formats, .path = AttentionPath::kFloats});
      const std::vector<int> tokens = all_tokens(make_attention_case(shape));
      const std::vector<float>& expected = reference_outputs(make_attention_case(shape))[0];
      set(shape, way);
      SCOPED_TRACE(describe(shape, way));
      EXPECT_LE(relative_error(run_attention(*execs_[1], shape, tokens), expected), 1e-3f);
    }
  }
}

// Each sequence's last entry is NaN: only the row that sees it becomes NaN.
TEST_P(AttentionCodes, AnEntryThatIsNotFiniteIsItsRowsAlone) {
  AttentionShape shape{
      .seqs = {{40, 40}, {39, 20}, {2, 2}}, .heads = 6, .kv_heads = 2, .head_dim = 64};
  for (const Way& way : ways(shape.head_dim)) {
    set(shape, way);
    shape.ends_in_nan = false;
    SCOPED_TRACE(describe(shape, way));
    const std::vector<int> tokens = all_tokens(make_attention_case(shape));
    const std::vector<float> expected = run_attention(*execs_[1], shape, tokens);
    shape.ends_in_nan = true;
    const std::vector<float> actual = run_attention(*execs_[1], shape, tokens);
    const std::size_t row = expected.size() / tokens.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto own = std::span(actual).subspan(i * row, row);
      if (i == 39 || i == 59 || i == 61) {
        EXPECT_TRUE(std::all_of(own.begin(), own.end(), [](float x) { return std::isnan(x); }));
      } else {
        ASSERT_TRUE(same_bits(own, std::span(expected).subspan(i * row, row))) << "token " << i;
      }
    }
  }
}

// The path that `info --ops` prints is the path that runs, and only the fallback is counted.
TEST(AttentionPath, IsTheOneThatIsCounted) {
  int num_decoded = 0;
  for (const Backend backend : {Backend::kReference, Backend::kCpu, Backend::kMlx}) {
    if (!backend_is_here(backend)) continue;
    const auto exec = make_exec({.backend = backend, .num_threads = 2}).value();
    for (const int head_dim : {64, 576}) {
      if (head_dim > 512 && backend == Backend::kMlx) continue;  // GPUs have no kernel for it
      AttentionShape shape{.seqs = {{40, 3}}, .heads = 2, .kv_heads = 1, .head_dim = head_dim};
      for (const KvFormats& formats : kKvCaseFormats) {
        shape.formats = formats;
        const AttentionPath path = attention_path(backend, formats, head_dim);
        const std::uint64_t before = exec->counters().num_decoded_attentions;
        run_attention(*exec, shape, all_tokens(make_attention_case(shape)));
        EXPECT_EQ(exec->counters().num_decoded_attentions - before,
                  path == AttentionPath::kDecoded ? 1 : 0)
            << backend_name(backend) << ", " << make_attention_case(shape).description;
        EXPECT_TRUE(is_quantized(formats) || path != AttentionPath::kCodes);
        num_decoded += path == AttentionPath::kDecoded;
      }
    }
  }
  EXPECT_GT(num_decoded, 4);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionCodes, ::testing::ValuesIn(supported_cpu_isas()),
                         [](const auto& info) { return std::string(cpu_isa_name(info.param)); });

}  // namespace
}  // namespace pagoda
