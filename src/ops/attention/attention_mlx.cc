// Attention over the paged cache, whose entries are read where they lie.
//
// The library's own attention, and the products it consists of, choose kernels by the number of
// queries and keys. Here a query of a head is one unit of work whose bits are a function of its
// position, its window and its sequence's entries: attention.metal on Apple GPUs, PagedAttention on
// CPUs.
#include "ops/attention/attention.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/ops.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backend/mlx/metal_kernel.h"
#include "backend/mlx/mlx_exec.h"
#include "ops/metal_bodies.h"

namespace pagoda::mlx {
namespace {

struct Settings {
  float scale;
  float soft_cap;  // 0: none
  int window;      // 0: none
};

// Inputs as both kinds of kernels take them.
enum Input { kQueries, kKeys, kValues, kPositions, kSequences, kTables, kSinks, kNumInputs };

// Sums of products, kLanes at a time so that they can be vectorised: in an order that the width
// alone decides.
template <typename T>
float dot(const float* q, const T* key, int width) {
  constexpr int kLanes = 16;
  std::array<float, kLanes> sums = {};
  int d = 0;
  for (; d + kLanes <= width; d += kLanes) {
    for (int i = 0; i < kLanes; ++i) sums[i] += q[d + i] * to_float(key[d + i]);
  }
  for (int i = 0; d + i < width; ++i) sums[i] += q[d + i] * to_float(key[d + i]);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

// All queries on a cache of T.
template <typename T>
struct HostAttention {
  const float* queries;  // [tokens, heads, head_dim]
  const T* keys;         // [blocks, block_size, kv_heads, head_dim]
  const T* values;
  const std::int32_t* positions;  // [tokens]
  const std::int32_t* sequences;  // [tokens], -1: padding
  const std::int32_t* tables;     // [seqs, max_blocks]
  const float* sinks;             // [heads], or null
  float* out;                     // [tokens, heads * head_dim]
  Settings settings;
  int num_tokens, heads, kv_heads, head_dim, block_size, max_blocks;

  void run() const {
    std::vector<float> scores;
    std::fill_n(out, std::int64_t{num_tokens} * heads * head_dim, 0.0f);
    for (int token = 0; token < num_tokens; ++token) {
      if (sequences[token] < 0) continue;
      for (int head = 0; head < heads; ++head) attend(token, head, scores);
    }
  }

  std::int64_t entry(int token, int head, int position) const {
    const std::int64_t block =
        tables[std::int64_t{sequences[token]} * max_blocks + position / block_size];
    const std::int64_t slot = block * block_size + position % block_size;
    return (slot * kv_heads + head / (heads / kv_heads)) * head_dim;
  }

  void attend(int token, int head, std::vector<float>& scores) const {
    const int end = positions[token] + 1;
    const int first = settings.window > 0 ? std::max(end - settings.window, 0) : 0;
    const std::int64_t row = (std::int64_t{token} * heads + head) * head_dim;
    float largest = sinks ? sinks[head] : -std::numeric_limits<float>::infinity();
    scores.resize(end - first);
    for (int p = first; p < end; ++p) {
      float score = settings.scale * dot(queries + row, keys + entry(token, head, p), head_dim);
      if (settings.soft_cap > 0) score = settings.soft_cap * std::tanh(score / settings.soft_cap);
      scores[p - first] = score;
      largest = std::max(largest, score);
    }
    float total = sinks ? std::exp(sinks[head] - largest) : 0.0f;
    for (int p = first; p < end; ++p) {
      const float weight = std::exp(scores[p - first] - largest);
      const T* const value = values + entry(token, head, p);
      total += weight;
      for (int d = 0; d < head_dim; ++d) out[row + d] += weight * to_float(value[d]);
    }
    for (int d = 0; d < head_dim; ++d) out[row + d] /= total;
  }
};

// Inputs as in Input, the queries float32; output [tokens, heads * head_dim] float32.
class PagedAttention final : public mx::UnaryPrimitive {
 public:
  PagedAttention(mx::Stream stream, const Settings& settings)
      : UnaryPrimitive(stream), settings_(settings) {}

  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& output) override {
    for (const mx::array& input : inputs) {
      if (!input.flags().row_contiguous)
        throw std::invalid_argument("[attention] expected contiguous arrays");
    }
    output.set_data(mx::allocator::malloc(output.nbytes()));
    const mx::Dtype dtype = inputs[kKeys].dtype();
    if (dtype == mx::float32) return attend<float>(inputs, output);
    if (dtype == mx::float16) return attend<f16>(inputs, output);
    attend<bf16>(inputs, output);
  }
  void eval_gpu(const std::vector<mx::array>& inputs, mx::array& output) override {
    throw std::logic_error("[attention] runs on Apple GPUs as a kernel of its own");
  }
  const char* name() const override { return "PagodaPagedAttention"; }

 private:
  template <typename T>
  void attend(const std::vector<mx::array>& inputs, mx::array& output) {
    const mx::Shape& q = inputs[kQueries].shape();
    const mx::Shape& cache = inputs[kKeys].shape();
    const bool has_sinks = static_cast<int>(inputs.size()) > kSinks;
    const HostAttention<T> attention{
        .queries = inputs[kQueries].data<float>(),
        .keys = reinterpret_cast<const T*>(inputs[kKeys].data<char>()),
        .values = reinterpret_cast<const T*>(inputs[kValues].data<char>()),
        .positions = inputs[kPositions].data<std::int32_t>(),
        .sequences = inputs[kSequences].data<std::int32_t>(),
        .tables = inputs[kTables].data<std::int32_t>(),
        .sinks = has_sinks ? inputs[kSinks].data<float>() : nullptr,
        .out = output.data<float>(),
        .settings = settings_,
        .num_tokens = q[0],
        .heads = q[1],
        .kv_heads = cache[2],
        .head_dim = q[2],
        .block_size = cache[1],
        .max_blocks = inputs[kTables].shape(1)};
    auto& encoder = mx::cpu::get_command_encoder(stream());
    for (const mx::array& input : inputs) encoder.set_input_array(input);
    encoder.set_output_array(output);
    encoder.dispatch([attention] { attention.run(); });
  }

  Settings settings_;
};

// The sequence of each token, -1 for padding: [tokens] int32
mx::array sequences_of(const HostBatch& host) {
  std::vector<std::int32_t> sequences(host.num_tokens(), -1);
  for (int seq = 0; seq < host.num_seqs(); ++seq) {
    for (int token = host.query_start[seq]; token < host.query_start[seq + 1]; ++token) {
      if (host.slot_mapping[token] >= 0) sequences[token] = seq;
    }
  }
  return mx::array(sequences.begin(), {host.num_tokens()}, mx::int32);
}

mx::array attend_on_gpu(std::vector<mx::array> inputs, const Settings& settings,
                        mx::Dtype out_dtype) {
  static const MetalKernel kernel = make_metal_kernel(
      "pagoda_attention",
      {"q", "keys", "values", "positions", "sequences", "tables", "sinks", "settings"},
      kAttentionMetal);
  constexpr int kNumGroups = 8;  // SIMD groups: 256 keys of a query under way at once
  const mx::Shape q = inputs[kQueries].shape();
  const mx::Shape cache = inputs[kKeys].shape();
  const bool has_sinks = static_cast<int>(inputs.size()) > kSinks;
  if (!has_sinks) inputs.push_back(mx::zeros({1}));
  inputs.push_back(mx::array({settings.scale, settings.soft_cap}));
  return run_metal_kernel(kernel, {.inputs = std::move(inputs),
                                   .shape = {q[0], q[1] * q[2]},
                                   .dtype = out_dtype,
                                   .num_threads = 32 * kNumGroups,
                                   .num_groups_x = q[1],
                                   .num_groups_y = q[0],
                                   .constants = {{"Out", out_dtype},
                                                 {"HEADS", q[1]},
                                                 {"KV_HEADS", cache[2]},
                                                 {"HEAD_DIM", q[2]},
                                                 {"BLOCK_SIZE", cache[1]},
                                                 {"WINDOW", settings.window},
                                                 {"NUM_GROUPS", kNumGroups},
                                                 {"HAS_SOFT_CAP", settings.soft_cap > 0},
                                                 {"HAS_SINKS", has_sinks}}});
}

}  // namespace

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  const Shape shape{q.extent(0), q.extent(1) * q.extent(2)};
  return mlx_exec(exec).build("attention", q.dtype(), shape, [&] {
    const Settings settings{args.scale, args.soft_cap, args.window};
    const mx::array sequences = mlx_exec(exec).once_a_step(
        {batch.slot_mapping}, {}, [&] { return sequences_of(*batch.host); });
    std::vector<mx::array> inputs = {
        array_of(q), array_of(view.keys),         array_of(view.values), array_of(batch.positions),
        sequences,   array_of(batch.block_tables)};
    if (args.sinks.defined()) inputs.push_back(array_of(args.sinks));
    if (mlx_exec(exec).uses_metal_kernels())
      return attend_on_gpu(std::move(inputs), settings, to_mlx(q.dtype()));
    inputs[kQueries] = mx::contiguous(mx::astype(inputs[kQueries], mx::float32));
    auto primitive =
        std::make_shared<PagedAttention>(mx::default_stream(mx::default_device()), settings);
    return mx::astype(
        mx::array(to_mlx(shape), mx::float32, std::move(primitive), std::move(inputs)),
        to_mlx(q.dtype()));
  });
}

}  // namespace pagoda::mlx
