// Computes the calls that a SIMD group's lanes make together (lane.h).
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/metal/emulator/machine.h"

namespace pagoda::emulator {
namespace {

using Values = std::array<std::uint32_t, kLanes>;

template <typename T, typename Join>
void join_all(Values& values, Join&& join) {
  T all = std::bit_cast<T>(values[0]);
  for (int lane = 1; lane < kLanes; ++lane) all = join(all, std::bit_cast<T>(values[lane]));
  values.fill(std::bit_cast<std::uint32_t>(all));
}

void sum_floats(Values& values, SumOrder order) {
  std::array<float, kLanes> sums = std::bit_cast<std::array<float, kLanes>>(values);
  for (int count = kLanes / 2; count > 0; count /= 2) {
    for (int i = 0; i < count; ++i)
      sums[i] = order == SumOrder::kNeighbours ? sums[2 * i] + sums[2 * i + 1]
                                               : sums[i] + sums[i + count];
  }
  values.fill(std::bit_cast<std::uint32_t>(sums[0]));
}

template <typename T>
void sum_before(Values& values) {
  T sum = 0;
  for (std::uint32_t& value : values) {
    const T own = std::bit_cast<T>(value);
    value = std::bit_cast<std::uint32_t>(sum);
    sum += own;
  }
}

void reduce_values(Values& values, Collective kind, SumOrder order) {
  using Uint = std::uint32_t;
  using Int = std::int32_t;
  switch (kind) {
    case Collective::kSumFloat:
      return sum_floats(values, order);
    case Collective::kSumInteger:
      return join_all<Uint>(values, [](Uint a, Uint b) { return a + b; });
    case Collective::kMaxFloat:
      return join_all<float>(values, [](float a, float b) { return std::fmax(a, b); });
    case Collective::kMaxInt:
      return join_all<Int>(values, [](Int a, Int b) { return std::max(a, b); });
    case Collective::kMaxUint:
      return join_all<Uint>(values, [](Uint a, Uint b) { return std::max(a, b); });
    case Collective::kMinFloat:
      return join_all<float>(values, [](float a, float b) { return std::fmin(a, b); });
    case Collective::kMinInt:
      return join_all<Int>(values, [](Int a, Int b) { return std::min(a, b); });
    case Collective::kMinUint:
      return join_all<Uint>(values, [](Uint a, Uint b) { return std::min(a, b); });
    case Collective::kAnd:
      return join_all<Uint>(values, [](Uint a, Uint b) { return a & b; });
    case Collective::kOr:
      return join_all<Uint>(values, [](Uint a, Uint b) { return a | b; });
    case Collective::kXor:
      return join_all<Uint>(values, [](Uint a, Uint b) { return a ^ b; });
    case Collective::kPrefixSumFloat:
      return sum_before<float>(values);
    case Collective::kPrefixSumInteger:
      return sum_before<Uint>(values);
    default:
      return;
  }
}

using Matrix = std::array<std::array<float, 8>, 8>;

Matrix gathered(const std::array<MatrixPart, kLanes>& parts) {
  Matrix matrix;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const MatrixPlace place = matrix_place_of(lane);
    matrix[place.row][place.column] = parts[lane].x;
    matrix[place.row][place.column + 1] = parts[lane].y;
  }
  return matrix;
}

// Returns a row of a * b + c. Needs a processor with fused multiply-add, as emulated kernels do.
[[gnu::target("avx2,fma")]] std::array<float, 8> product_row(const std::array<float, 8>& a,
                                                             const Matrix& b,
                                                             const std::array<float, 8>& c,
                                                             std::size_t row, MatrixOrder order) {
  std::array<float, 8> sums = c;
  if (order == MatrixOrder::kAscending) {
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t column = 0; column < 8; ++column)
        sums[column] = __builtin_fmaf(a[k], b[k][column], sums[column]);
  } else if (order == MatrixOrder::kByPlace) {
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t column = 0; column < 8; ++column) {
        const std::size_t k = (i + row * 3 + column) % 8;
        sums[column] = __builtin_fmaf(a[k], b[k][column], sums[column]);
      }
  } else {
    for (std::size_t column = 0; column < 8; ++column) {
      std::array<float, 4> pairs;
      for (std::size_t i = 0; i < 4; ++i)
        pairs[i] = a[2 * i] * b[2 * i][column] + a[2 * i + 1] * b[2 * i + 1][column];
      sums[column] += (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
    }
  }
  return sums;
}

void multiply(SimdGroup& group, MatrixOrder order) {
  const Matrix a = gathered(group.a), b = gathered(group.b), c = gathered(group.c);
  Matrix product;
  for (std::size_t row = 0; row < 8; ++row)
    product[row] = product_row(a[row], b, c[row], row, order);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const MatrixPlace place = matrix_place_of(lane);
    group.c[lane] = {product[place.row][place.column], product[place.row][place.column + 1]};
  }
}

}  // namespace

void Machine::compute(SimdGroup& group, Collective kind) {
  if (kind == Collective::kMatrixProduct)
    multiply(group, options_.matrix_order);
  else
    reduce_values(group.values[group.parity], kind, options_.sum_order);
  group.parity ^= 1;
}

std::uint32_t shuffle(std::uint32_t bits, std::uint32_t source) {
  Machine& machine = Machine::running();
  if (source >= kLanes) {
    machine.note_error("a shuffle from a lane that there is not");
    machine.stop();
  }
  auto& values = machine.simd_group().values[machine.simd_group().parity];
  values[machine.lane_index()] = bits;
  machine.arrive(Collective::kShuffle, __builtin_return_address(0));
  return values[source];
}

std::uint32_t reduce(Collective kind, std::uint32_t bits) {
  Machine& machine = Machine::running();
  auto& values = machine.simd_group().values[machine.simd_group().parity];
  const std::uint32_t lane = machine.lane_index();
  values[lane] = bits;
  machine.arrive(kind, __builtin_return_address(0));
  return values[lane];
}

void simdgroup_barrier() {
  Machine::running().arrive(Collective::kSimdgroupBarrier, __builtin_return_address(0));
}

void threadgroup_barrier(bool orders_threadgroup_memory, bool orders_device_memory) {
  Machine::running().arrive(Collective::kThreadgroupBarrier, __builtin_return_address(0),
                            static_cast<std::uint8_t>((orders_threadgroup_memory ? 1 : 0) |
                                                      (orders_device_memory ? 2 : 0)));
}

std::uint32_t current_lane() {
  return Machine::running().lane_index();
}

std::uint32_t touch_matrix(const void* matrix, std::uint64_t elements_per_row) {
  Machine& machine = Machine::running();
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const std::uint64_t call =
      reinterpret_cast<std::uintptr_t>(matrix) + (elements_per_row << 48) + (place << 24);
  std::uint64_t& trail = machine.lane().trail;
  trail = (trail ^ call) * 0x9e3779b97f4a7c15u;
  return machine.lane_index();
}

MatrixPart multiply_accumulate(MatrixPart a, MatrixPart b, MatrixPart c) {
  Machine& machine = Machine::running();
  SimdGroup& group = machine.simd_group();
  const std::uint32_t lane = machine.lane_index();
  group.a[lane] = a;
  group.b[lane] = b;
  group.c[lane] = c;
  machine.arrive(Collective::kMatrixProduct, __builtin_return_address(0));
  return group.c[lane];
}

std::uint32_t update_atomic(void* word, AtomicUpdate update, std::uint32_t operand) {
  if (Tracer* const tracer = Tracer::of_this_thread(); tracer != nullptr) {
    const void* const place = __builtin_return_address(0);
    if (update == AtomicUpdate::kLoad)
      tracer->check<AccessKind::kAtomicLoad, 2>(word, place);
    else if (update == AtomicUpdate::kStore)
      tracer->check<AccessKind::kAtomicStore, 2>(word, place);
    else
      tracer->check<AccessKind::kAtomicUpdate, 2>(word, place);
  }
  std::uint32_t& value = *static_cast<std::uint32_t*>(word);
  const std::uint32_t before = value;
  const auto signed_before = static_cast<std::int32_t>(before);
  const auto signed_operand = static_cast<std::int32_t>(operand);
  switch (update) {
    case AtomicUpdate::kLoad:
      break;
    case AtomicUpdate::kStore:
    case AtomicUpdate::kExchange:
      value = operand;
      break;
    case AtomicUpdate::kAdd:
      value = before + operand;
      break;
    case AtomicUpdate::kSub:
      value = before - operand;
      break;
    case AtomicUpdate::kMaxInt:
      value = static_cast<std::uint32_t>(std::max(signed_before, signed_operand));
      break;
    case AtomicUpdate::kMaxUint:
      value = std::max(before, operand);
      break;
    case AtomicUpdate::kMinInt:
      value = static_cast<std::uint32_t>(std::min(signed_before, signed_operand));
      break;
    case AtomicUpdate::kMinUint:
      value = std::min(before, operand);
      break;
    case AtomicUpdate::kAnd:
      value = before & operand;
      break;
    case AtomicUpdate::kOr:
      value = before | operand;
      break;
    case AtomicUpdate::kXor:
      value = before ^ operand;
      break;
  }
  return before;
}

std::uint32_t compare_exchange(void* word, std::uint32_t expected, std::uint32_t desired) {
  if (Tracer* const tracer = Tracer::of_this_thread(); tracer != nullptr)
    tracer->check<AccessKind::kAtomicUpdate, 2>(word, __builtin_return_address(0));
  std::uint32_t& value = *static_cast<std::uint32_t*>(word);
  const std::uint32_t before = value;
  if (before == expected) value = desired;
  return before;
}

}  // namespace pagoda::emulator
