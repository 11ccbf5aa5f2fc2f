// OpCase: one shape of one op with seeded inputs. Each op has one list of cases, for its test, its
// benchmark and the support matrix.
//
// Inputs are rounded to bfloat16, so that every backend starts from the same values and only
// arithmetic differs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "quant/host_tensor.h"
#include "tensor/exec.h"

namespace pagoda {

// Runs the op once on inputs that are in place; may be called again.
using CaseRun = std::function<std::vector<Tensor>()>;

// The largest difference from the reference allowed, as a share of the output's largest magnitude.
struct CaseTolerance {
  float cpu = 1e-5f;
  float mlx = 1e-5f;
  float cuda = 0.02f;  // activations are bfloat16: 2^-8 a rounding

  float of(Backend backend) const;
};

struct OpCase {
  std::string op;
  std::string description;
  int num_tokens = 0;
  // Puts the inputs of the listed tokens, in that order, on `exec`. A token's inputs do not depend
  // on the list, so neither may its outputs.
  std::function<Result<CaseRun>(Exec& exec, std::span<const int> tokens)> prepare;
  // Whether row i of every output belongs to tokens[i]. If false, outputs depend on the set of
  // tokens, never on their order.
  bool rows_are_tokens = true;
  CaseTolerance tolerance = {};
  double bytes = 0;  // read and written, once each
  double flops = 0;
  bool is_large = false;  // for benchmarks; tests leave it out
};

// Runs a case once, and returns its outputs, each widened to float32; -infinity becomes the lowest
// finite number. `tokens` as for prepare.
Result<std::vector<std::vector<float>>> run_case(Exec& exec, const OpCase& op_case,
                                                 std::span<const int> tokens);
std::vector<int> all_tokens(const OpCase& op_case);  // 0, 1, ...
// Returns the outputs to expect for `tokens`, from the outputs of all tokens: the rows of `tokens`
// in their order, or everything if rows are not tokens.
std::vector<std::vector<float>> select_outputs(const OpCase& op_case,
                                               const std::vector<std::vector<float>>& all,
                                               std::span<const int> tokens);

// Returns whether all bits are the same: a NaN equals itself, and -0 does not equal 0.
bool same_bits(std::span<const float> a, std::span<const float> b);
// Returns the largest difference as a share of the largest expected magnitude. A difference that is
// NaN or infinite is returned itself. REQUIRES: both have the same size.
float relative_error(std::span<const float> actual, std::span<const float> expected);

// Inputs that the case lists are built from.

// Returns values that are uniform in [-magnitude, magnitude), rounded to bfloat16.
std::vector<float> random_values(std::uint32_t seed, std::int64_t count, float magnitude = 1.0f);
// How a case's matrix is stored: plain, in blocks, or in affine groups of a layout.
struct CaseFormat {
  CaseFormat(WeightFormat format) : format(format) {}  // NOLINT(google-explicit-constructor)
  CaseFormat(const AffineLayout& affine)               // NOLINT(google-explicit-constructor)
      : format(WeightFormat::kAffine), affine(affine) {}

  WeightFormat format;
  AffineLayout affine = {};  // of kAffine
};
// Returns a name such as "Q4_1" or "affine 4-bit, groups of 64, BF16".
std::string name_of(const CaseFormat& format);
std::int64_t packed_bytes(const CaseFormat& format, std::int64_t num_values);
// Makes a matrix with the bytes of a checkpoint's file: random bits in the format, with values of
// about 1 in magnitude.
HostTensor random_matrix(std::uint32_t seed, const CaseFormat& format, std::int64_t rows,
                         std::int64_t cols);
// Returns rows `rows` of `values`, each `width` long.
std::vector<float> take_rows(std::span<const float> values, std::int64_t width,
                             std::span<const int> rows);

// Returns the type that the backend's traits have for activations.
DType activation_dtype(const Exec& exec);
Tensor upload_activations(Exec& exec, std::span<const float> values, const Shape& shape);
// Rounds to `dtype` (nearest even).
Tensor upload_as(Exec& exec, DType dtype, std::span<const float> values, const Shape& shape);

}  // namespace pagoda
