#include "ops/gather_rows/gather_rows.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

OpCase make_gather_rows_case(const CaseFormat& format, int rows, int cols, int num_ids,
                             float factor = 1) {
  OpCase result{.op = "gather_rows",
                .description = fmt::format("{} of {} x {} {}{}", num_ids, rows, cols,
                                           name_of(format), factor == 1 ? "" : ", of a factor"),
                .num_tokens = num_ids,
                .tolerance = {.cpu = 1e-6f, .mlx = 1e-6f, .cuda = 0.01f}};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    const auto n = static_cast<std::int64_t>(wanted.size());
    std::vector<std::int32_t> ids;
    for (const int i : wanted) ids.push_back((7 * i + rows - 1) % rows);
    const HostTensor parts[] = {random_matrix(1, format, rows, cols)};
    PAGODA_ASSIGN_OR_RETURN(const Weight weight, prepare_weight(exec, parts));
    return CaseRun([&exec, weight, factor, at = exec.upload<std::int32_t>(ids, {n})] {
      return std::vector<Tensor>{gather_rows(exec, weight, at, {.factor = factor})};
    });
  };
  result.bytes = 4.0 * num_ids * cols + static_cast<double>(packed_bytes(format, num_ids * cols));
  return result;
}

}  // namespace

std::vector<OpCase> gather_rows_cases() {
  std::vector<OpCase> cases;
  for (const WeightFormat format : kWeightFormats) {
    const bool is_wide = traits_of(format).block_size > 32;
    cases.push_back(make_gather_rows_case(format, 40, is_wide ? 256 : 64, 5));
    cases.push_back(make_gather_rows_case(format, 33, is_wide ? 768 : 160, 9));
    cases.push_back(make_gather_rows_case(format, 40, is_wide ? 256 : 64, 5, /*factor=*/24.0f));
  }
  cases.push_back(make_gather_rows_case(WeightFormat::kBF16, 5, 7, 3));
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
      for (const int group_size : {32, 64, 128}) {
        cases.push_back(make_gather_rows_case(AffineLayout{bits, group_size, format}, 33, 128, 9));
      }
    }
  }
  return cases;
}

}  // namespace pagoda
