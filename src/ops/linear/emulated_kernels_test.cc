// Tests the products on AVX-512 and AMX on a machine that may have neither. Their files are
// compiled into this test with the emulated intrinsics of tests/emulated_x86.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_cases.h"
#include "ops/linear/linear_kernels.h"
#include "ops/op_case.h"

namespace pagoda {
namespace {

constexpr int kRows = 75;  // of a weight: the last of its panels is not full
constexpr int kTokens = 37;

std::vector<CaseFormat> all_formats() {
  std::vector<CaseFormat> formats(std::begin(kWeightFormats), std::end(kWeightFormats));
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 128})
      formats.emplace_back(AffineLayout{.bits = bits, .group_size = group});
  }
  return formats;
}

struct Problem {
  CaseFormat format;
  int cols;
  std::vector<float> x;  // [kTokens, cols]
};

// Returns the product [kTokens, kRows], computed in tiles of `tile_rows` rows, or of the most rows
// that the kernels take. Returns an empty list if they do not take the format.
std::vector<float> product_by(const cpu::LinearKernels& kernels, const Problem& problem,
                              int tile_rows) {
  const auto exec = make_exec({.backend = Backend::kCpu, .num_threads = 1}).value();
  const std::vector<HostTensor> parts = {random_matrix(7, problem.format, kRows, problem.cols)};
  const Weight weight = prepare_weight(*exec, parts).value();
  const cpu::WeightSegment& segment = cpu::packed(weight).segments()[0];
  cpu::ActivationLayout layout;
  if (!kernels.layout_of(segment.layout.kind, layout)) return {};
  tile_rows = std::min(tile_rows, kernels.most_rows(layout, kTokens));
  const std::int64_t num_tiles = (kTokens + tile_rows - 1) / tile_rows;
  const std::int64_t tile_bytes = kernels.tile_bytes(layout, tile_rows, problem.cols);
  const Tensor tiles = exec->allocate(DType::kFloat32, {num_tiles, tile_bytes / 4});
  auto* memory = reinterpret_cast<std::byte*>(tiles.data<float>());
  // Parts of a tile are packed last to first, because threads may pack them in any order.
  const std::int64_t part = layout.takes_whole_rows ? problem.cols : cpu::kTilePart;
  for (std::int64_t i = 0; i < num_tiles; ++i) {
    const int row = static_cast<int>(i) * tile_rows;
    const cpu::TileSource source = {.x = problem.x.data() + std::int64_t{row} * problem.cols,
                                    .x_stride = problem.cols,
                                    .num_rows = std::min(tile_rows, kTokens - row),
                                    .tile_rows = tile_rows,
                                    .cols = problem.cols};
    for (std::int64_t first = (problem.cols - 1) / part * part; first >= 0; first -= part) {
      const std::int64_t end = std::min<std::int64_t>(first + part, problem.cols);
      kernels.pack_tile(layout, source, {first, end}, memory + i * tile_bytes);
    }
  }
  std::vector<float> out(std::size_t{kTokens} * kRows);
  kernels.multiply({.kind = segment.layout.kind,
                    .layout = layout,
                    .tiles = memory,
                    .tile_bytes = tile_bytes,
                    .tile_rows = tile_rows,
                    .num_rows = kTokens,
                    .cols = problem.cols,
                    .panels = segment.panels->host(),
                    .panel_bytes = segment.panel_bytes,
                    .header_area = segment.layout.header_area(),
                    .units_of_header = segment.layout.units_of_header,
                    .header_is_bfloat16 = segment.layout.header_is_bfloat16,
                    .num_columns = kRows,
                    .out = out.data(),
                    .out_stride = kRows},
                   0, segment.num_panels());
  return out;
}

// Expects that each row has the same bits as in a tile of one row, whatever the tile's height and
// the row's place in it.
void expect_same_products(const cpu::LinearKernels& kernels, const Problem& problem) {
  const std::vector<float> expected = product_by(kernels, problem, 1);
  ASSERT_EQ(expected.empty(), problem.format.format == WeightFormat::kF32);
  if (expected.empty()) return;
  const std::vector<float> portable = product_by(*cpu::kPortableKernels, problem, 1);
  EXPECT_LE(relative_error(expected, portable), 2e-4f);
  for (const int tile_rows : {2, 4, 6, 16}) {
    EXPECT_TRUE(same_bits(product_by(kernels, problem, tile_rows), expected)) << tile_rows;
  }
}
void expect_same_products(const Problem& problem) {
  {
    SCOPED_TRACE("AVX-512");
    expect_same_products(*cpu::kAvx512Kernels, problem);
  }
  SCOPED_TRACE("AMX");
  expect_same_products(*cpu::kAmxKernels, problem);
}

TEST(EmulatedKernels, GiveEachRowTheSameBits) {
  for (const CaseFormat& format : all_formats()) {
    for (const int cols : {256, 1280}) {
      SCOPED_TRACE(name_of(format) + ", " + std::to_string(cols) + " k");
      expect_same_products({format, cols, random_values(8, std::int64_t{kTokens} * cols)});
    }
  }
}

TEST(EmulatedKernels, TakeBlocksThatEndASpanEarly) {
  for (const WeightFormat format :
       {WeightFormat::kQ8_0, WeightFormat::kQ4_1, WeightFormat::kBF16}) {
    constexpr int kCols = 608;
    SCOPED_TRACE(traits_of(format).name);
    expect_same_products({format, kCols, random_values(8, std::int64_t{kTokens} * kCols)});
  }
}

// A row with NaN or infinity changes no bit of other rows.
TEST(EmulatedKernels, LeaveRowsOfNoNumbersAlone) {
  constexpr int kCols = 512;
  for (const WeightFormat format :
       {WeightFormat::kQ4_0, WeightFormat::kQ5_1, WeightFormat::kQ4_K, WeightFormat::kBF16}) {
    SCOPED_TRACE(traits_of(format).name);
    Problem problem = {format, kCols, random_values(8, std::int64_t{kTokens} * kCols)};
    problem.x[3 * kCols + 100] = std::numeric_limits<float>::quiet_NaN();
    problem.x[17 * kCols + 400] = std::numeric_limits<float>::infinity();
    for (int k = 0; k < kCols; ++k) problem.x[20 * kCols + k] = 0;
    const std::vector<float> expected = product_by(*cpu::kAmxKernels, problem, 1);
    const std::vector<float> actual = product_by(*cpu::kAmxKernels, problem, 16);
    EXPECT_TRUE(std::isnan(actual[3 * kRows]) && std::isnan(actual[17 * kRows]));
    EXPECT_EQ(actual[20 * kRows], 0);
    for (int row = 0; row < kTokens; ++row) {
      if (row == 3 || row == 17) continue;
      const auto of_row = [&](const std::vector<float>& all) {
        return std::span(all).subspan(std::size_t(row) * kRows, kRows);
      };
      EXPECT_TRUE(same_bits(of_row(actual), of_row(expected))) << row;
    }
  }
}

}  // namespace
}  // namespace pagoda
