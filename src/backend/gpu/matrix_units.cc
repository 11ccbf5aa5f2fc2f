#include "backend/gpu/matrix_units.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/matrix_units_metal.h"
#include "backend/gpu/metal_sources.h"
#include "tensor/read_values.h"

namespace pagoda::gpu {
namespace {

constexpr int kSide = 8;
constexpr int kElements = kSide * kSide;
constexpr int kTrials = 64;  // trials of each kind

// Products of kTrials matrices; [trials, 64] each.
struct Trials {
  std::vector<float> a, b, c;
};

// Draws a number from a wide range of magnitudes: in a sum, huge numbers cancel and tiny numbers
// are rounded away.
float draw_number(std::mt19937& random) {
  const auto sign = random() % 2 == 0 ? 1.0f : -1.0f;
  const float fraction = 1 + static_cast<float>(random() % (1 << 23)) * 0x1p-23f;
  switch (random() % 16) {
    case 0:
      return sign * std::ldexp(fraction, 60);
    case 1:
      return sign * std::ldexp(fraction, -60);
    case 2:
      return 0;
    case 3:
      return random() % 64 == 0 ? sign * std::numeric_limits<float>::infinity() : sign;
    default:
      return sign * std::ldexp(fraction, static_cast<int>(random() % 24) - 12);
  }
}

// Returns matrices whose elements are independent random numbers.
Trials random_trials() {
  Trials trials;
  std::mt19937 random(20);
  for (std::vector<float>* values : {&trials.a, &trials.b, &trials.c}) {
    for (int i = 0; i < kTrials * kElements; ++i) values->push_back(draw_number(random));
  }
  return trials;
}

// Returns trials in which all rows of a, all columns of b and all elements of c are equal. So all
// elements of a result are the same sum.
Trials uniform_trials() {
  Trials trials;
  std::mt19937 random(21);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<float, kSide> row, column;
    for (float& value : row) value = draw_number(random);
    for (float& value : column) value = draw_number(random);
    const float start = draw_number(random);
    for (int i = 0; i < kElements; ++i) {
      trials.a.push_back(row[i % kSide]);
      trials.b.push_back(column[i / kSide]);
      trials.c.push_back(start);
    }
  }
  return trials;
}

// Returns the products [trials, 2, 64].
Result<std::vector<float>> multiply(Exec& exec, const Trials& trials) {
  const Shape shape = {kTrials, kElements};
  GpuOp op{.name = "matrix_units",
           .inputs = {exec.upload<float>(trials.a, shape), exec.upload<float>(trials.b, shape),
                      exec.upload<float>(trials.c, shape)},
           .outputs = {{DType::kFloat32, {kTrials, 2, kElements}}}};
  op.launch.dispatches = {{.function = {&kMatrixUnitsMetal, "matrix_units"},
                           .buffers = {input(0), input(1), input(2), output(0)},
                           .parameters = MatrixUnitsParameters{kElements},
                           .num_groups = {kTrials, 1, 1}}};
  const Tensor out = run(exec, std::move(op))[0];
  PAGODA_ASSIGN_OR_RETURN(const std::span<const float> values, read_values<float>(exec, out));
  return std::vector<float>(values.begin(), values.end());
}

bool is_same(float a, float b) {
  return std::memcmp(&a, &b, sizeof(float)) == 0 || (std::isnan(a) && std::isnan(b));
}

// Returns whether the GPU has computed the chains: most are bitwise equal to the host's. The others
// may differ because the GPU flushes subnormal numbers.
bool has_computed(const Trials& trials, const std::vector<float>& products) {
  int num_same = 0;
  for (int i = 0; i < kTrials * kElements; ++i) {
    const int first = i / kElements * kElements;
    const int row = i % kElements / kSide, column = i % kSide;
    float total = trials.c[i];
    for (int k = 0; k < kSide; ++k) {
      total =
          std::fma(trials.a[first + kSide * row + k], trials.b[first + kSide * k + column], total);
    }
    num_same += is_same(products[i + first + kElements], total) ? 1 : 0;
  }
  return num_same > kTrials * kElements * 9 / 10;
}

}  // namespace

std::string_view to_string(MatrixUnits units) {
  switch (units) {
    case MatrixUnits::kAscendingChain:
      return "matrix units add as lanes do";
    case MatrixUnits::kOtherOrder:
      return "matrix units have an order of their own, so they take single rows too";
    case MatrixUnits::kUnusable:
      return "matrix units add by place, so lanes take all rows";
  }
  return "";
}

Result<MatrixUnits> find_matrix_units(Exec& exec) {
  const Trials random_inputs = random_trials();
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> random, multiply(exec, random_inputs));
  if (!has_computed(random_inputs, random))
    return unavailable("[device] {}: this GPU's sums of products are not the host's",
                       backend_name(exec.backend()));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> uniform, multiply(exec, uniform_trials()));
  bool is_chain = true;
  bool has_one_order = true;
  for (int trial = 0; trial < kTrials; ++trial) {
    for (int i = 0; i < kElements; ++i) {
      const int at = 2 * trial * kElements + i;
      is_chain = is_chain && is_same(random[at], random[at + kElements]) &&
                 is_same(uniform[at], uniform[at + kElements]);
      has_one_order = has_one_order && is_same(uniform[at], uniform[2 * trial * kElements]);
    }
  }
  if (is_chain) return MatrixUnits::kAscendingChain;
  return has_one_order ? MatrixUnits::kOtherOrder : MatrixUnits::kUnusable;
}

}  // namespace pagoda::gpu
