#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/attention/attention_cases.h"
#include "ops/linear/linear_cases.h"
#include "tests/metal/cuda/limits_metal.h"
#include "tests/metal/cuda/modes.h"

namespace pagoda::metal_on_cuda {
namespace {

constexpr double kRotated = 400e6;  // bytes between two reads of the same byte: eight L2 caches
constexpr int kLimitGroups = 1056;
constexpr int kLimitThreads = 256 * kLimitGroups;
constexpr gpu::GpuSource kLimits = {"limits", ""};

struct Limits {
  double read = 0;   // bytes per second
  double copy = 0;   // bytes read and bytes written per second
  double flops = 0;  // operations per second; a product and a sum are two
};

KernelLaunch limit_launch(std::string_view name, std::vector<Address> buffers, int count) {
  return {.function = {&kLimits, name},
          .buffers = std::move(buffers),
          .parameters = LimitsParameters{.count = count, .num_threads = kLimitThreads},
          .num_groups = {kLimitGroups, 1, 1},
          .num_threads = 256};
}

Limits measure_limits(Device& device, bool is_listing) {
  constexpr int kVectors = 64 * kLimitThreads;
  constexpr double kBytes = 16.0 * kVectors;
  constexpr int kRounds = 200;
  const std::size_t size = is_listing ? 16 : static_cast<std::size_t>(kBytes);
  const Address from = device.allocate(size);
  const Address to = device.allocate(size);
  device.fill(from, size, std::byte{0});
  Limits limits;
  const auto seconds = [&](std::string_view name, int count) {
    const KernelLaunch launch = limit_launch(name, {from, to}, count);
    return device.seconds_of(std::span(&launch, 1));
  };
  limits.read = kBytes / seconds("limits_read", kVectors);
  limits.copy = 2 * kBytes / seconds("limits_copy", kVectors);
  limits.flops = 2.0 * 8 * 64 * kRounds * kLimitThreads / seconds("limits_fma", kRounds);
  device.release(from);
  device.release(to);
  if (is_listing) return limits;
  fmt::print(
      "{}: reads {:.0f} GB/s, copies {:.0f} GB/s (read and written), {:.1f} TFLOP/s by fma\n",
      device.name(), limits.read / 1e9, limits.copy / 1e9, limits.flops / 1e12);
  return limits;
}

// Measures one case. It runs on several copies of the inputs in turn, so that no cache holds them.
class Figure {
 public:
  Figure(CudaExec& exec, Exec& reference, const Limits& limits, bool is_listing)
      : exec_(exec), reference_(reference), limits_(limits), is_listing_(is_listing) {}

  // Prints a case's time. `checked`: the tokens whose results are compared with the reference.
  bool take(const std::string& name, const OpCase& op_case, const std::vector<int>& checked) {
    const bool is_right = is_listing_ || is_near(op_case, checked);
    const int copies =
        is_listing_ ? 1 : std::max(static_cast<int>(std::ceil(kRotated / op_case.bytes)), 1);
    std::vector<CaseRun> runs;
    std::vector<Tensor> outputs;
    std::vector<KernelLaunch> launches;
    exec_.set_record(&launches);
    for (int i = 0; i < copies; ++i) {
      runs.push_back(op_case.prepare(exec_, all_tokens(op_case)).value());
      for (Tensor& output : runs.back()()) outputs.push_back(std::move(output));
    }
    exec_.set_record(nullptr);
    const double seconds = exec_.device().seconds_of(launches) / copies;
    if (is_listing_) return true;
    fmt::print("{:<52} {:>9.1f} us {:>7.0f} GB/s ({:3.0f} %) {:>6.2f} TFLOP/s ({:3.0f} %){}\n",
               name, seconds * 1e6, op_case.bytes / seconds / 1e9,
               100 * op_case.bytes / seconds / limits_.read, op_case.flops / seconds / 1e12,
               100 * op_case.flops / seconds / limits_.flops, is_right ? "" : "   WRONG");
    return is_right;
  }

 private:
  bool is_near(const OpCase& op_case, const std::vector<int>& checked) {
    const auto all = run_case(exec_, op_case, all_tokens(op_case)).value();
    const auto expected = run_case(reference_, op_case, checked).value();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto width = static_cast<std::int64_t>(all[i].size()) / op_case.num_tokens;
      const std::vector<float> actual = take_rows(all[i], width, checked);
      if (!(relative_error(actual, expected[i]) <= op_case.tolerance.of(Backend::kMlx)))
        return false;
    }
    return true;
  }

  CudaExec& exec_;
  Exec& reference_;
  const Limits& limits_;
  bool is_listing_;
};

OpCase decode_case(int num_seqs, int context_len, KvFormat format = KvFormat::kBFloat16) {
  return make_attention_case(
      {.seqs = std::vector<AttentionSeq>(static_cast<std::size_t>(num_seqs), {context_len, 1}),
       .heads = 16,
       .kv_heads = 8,
       .head_dim = 128,
       .block_size = 16,
       .formats = {format, format},
       .is_large = true});
}

OpCase product_case(int tokens, int rows, int cols, const CaseFormat& format) {
  return make_linear_case(
      {.tokens = tokens, .cols = cols, .parts = {{format, rows}}, .is_large = true});
}

}  // namespace

bool take_figures(CudaExec& exec, Exec& reference, bool is_listing, const std::string& filter) {
  const Limits limits = measure_limits(exec.device(), is_listing);
  Figure figure(exec, reference, limits, is_listing);
  const CaseFormat affine(
      AffineLayout{.bits = 4, .group_size = 64, .scale_format = WeightFormat::kBF16});
  const CaseFormat bf16(WeightFormat::kBF16);
  bool all_right = true;
  const auto take = [&](const std::string& name, const OpCase& op_case,
                        const std::vector<int>& checked) {
    if (name.find(filter) == std::string::npos) return;
    all_right = figure.take(name, op_case, checked) && all_right;
  };
  take("attention decode, 1 sequence of 512", decode_case(1, 512), {0});
  take("attention decode, 1 sequence of 8,192", decode_case(1, 8192), {0});
  take("attention decode, 32 sequences of 4,096", decode_case(is_listing ? 1 : 32, 4096), {0});
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    const std::string_view name = kv_format_name(format);
    take(fmt::format("attention decode, 1 sequence of 8,192, {}", name),
         decode_case(1, 8192, format), {0});
    take(fmt::format("attention decode, 32 sequences of 4,096, {}", name),
         decode_case(is_listing ? 1 : 32, 4096, format), {0});
  }
  take("1 row, BF16 28,672 x 4,096", product_case(1, 28672, 4096, bf16), {0});
  take("1 row, BF16 6,144 x 1,024", product_case(1, 6144, 1024, bf16), {0});
  take("1 row, affine 4-bit of 64, 28,672 x 4,096", product_case(1, 28672, 4096, affine), {0});
  take("4 rows, affine 4-bit of 64, 28,672 x 4,096", product_case(4, 28672, 4096, affine),
       {0, 1, 2, 3});
  exec.set_matrix_units(gpu::MatrixUnits::kUnusable);
  take("512 rows by lanes, affine 4-bit of 64, 28,672 x 4,096",
       product_case(512, 28672, 4096, affine), {0, 511});
  exec.set_matrix_units(gpu::MatrixUnits::kAscendingChain);
  return all_right;
}

}  // namespace pagoda::metal_on_cuda
