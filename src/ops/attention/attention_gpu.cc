// attention on Apple GPUs: chooses the kernels of attention.metal for a step's tokens, and launches
// them. No choice here changes a bit of a result.
#include <algorithm>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_metal.h"
#include "ops/kv_write/cache_gpu.h"
#include "ops/metal_sources.h"
#include "quant/kv_rotation.h"

namespace pagoda::gpu {
namespace {

// The inputs of the op. An input that a call lacks is replaced by another one, and a flag says so.
// The cache's arrays follow. If several ops write one output, that of the op before is the last
// input.
enum AttentionInput {
  kQueries,
  kQueryStart,
  kContextLens,
  kBlockTables,
  kFirstSlots,
  kSlotMapping,
  kSinks,
  kCache
};

// The most operations of an op: some tenths of a second on a slow GPU. A prompt with very many keys
// takes several ops, so that a command buffer can end between them.
constexpr double kMaxFlops = 2e11;

constexpr int kMaxThreadgroupBytes = 32768;
// SIMD groups of attention_decode. If there are few threadgroups, each has as many as a partition
// has tiles. Else each has fewer, so that some threadgroups read while others begin or end.
constexpr int kFewThreadgroups = 128;
constexpr int kSimdGroupsOfFew = kAttentionDecodeThreads / 32;
constexpr int kSimdGroupsOfMany = 8;
// The most values of a threadgroup's heads in attention_decode: so four SIMD groups have room for
// their sums.
constexpr int kMaxHeadValues = 1024;

int divided_up(int count, int size) {
  return num_groups_of(count, size);
}

// Returns the factor by which two rotations multiply; 1 if entries are not rotated.
int rotation_width(const KvEntries& entries) {
  if (!is_quantized(entries.format)) return 1;
  return static_cast<int>(kv_rotation_width(entries.head_dim()));
}

// Returns the number of an entry's values in threadgroup memory, padded to whole pieces of 16 bytes
// or of eight codes. A piece of 4-bit codes has four of either half of the entry.
int padded_dim(const KvEntries& entries) {
  const auto head_dim = static_cast<int>(entries.head_dim());
  if (entries.format == KvFormat::kInt4) return divided_up(head_dim, 8) * 8;
  const int values = entries.format == KvFormat::kFloat32 ? 4 : 8;
  return divided_up(head_dim, values) * values;
}

// Returns the number of partitions in which a query sees a key.
int partitions_of(int position, int window) {
  const int first = window > 0 ? std::max(position - window + 1, 0) : 0;
  return position / kAttentionPartition - first / kAttentionPartition + 1;
}

// Threadgroups of attention_prompt, from `first_group` on.
struct PromptRange {
  int first_group = 0;
  int num_groups = 0;
  double flops = 0;
};

// The division of a step's queries into dispatches and threadgroups.
class AttentionPlan {
 public:
  AttentionPlan(const Tensor& q, const KvView& view, const StepBatch& batch,
                const AttentionArgs& args);

  bool has_decodes() const { return num_rows_ > 0; }
  const std::vector<PromptRange>& prompts() const { return prompts_; }
  // Adds the dispatches for decodes and short parts.
  void add_decodes(GpuLaunch& launch) const;
  void add_prompts(const PromptRange& range, GpuLaunch& launch) const;

 private:
  void count_decode(int position);
  void count_prompt(int begin_position, int num_tokens);
  double flops_of(int num_tokens, int position) const;
  int decode_floats(int simd_groups) const;
  int decode_simd_groups(int threadgroups) const;
  int prompt_rows() const;
  GpuFunction function(std::string_view name) const;
  std::vector<GpuOperand> buffers() const;

  AttentionParameters common_ = {};
  CacheArrays cache_;
  std::string_view key_type_;
  std::string_view value_type_;
  int key_dim_;  // padded
  int value_dim_;
  int heads_of_kv_;
  int decode_heads_;  // heads_at_once of attention_decode
  int prompt_heads_;
  int tokens_at_once_;
  int num_rows_ = 0;  // decodes, and tokens of short parts
  int num_partitions_ = 1;
  double decode_flops_ = 0;
  std::vector<PromptRange> prompts_;
};

AttentionPlan::AttentionPlan(const Tensor& q, const KvView& view, const StepBatch& batch,
                             const AttentionArgs& args)
    : common_{.heads = static_cast<int>(q.extent(1)),
              .kv_heads = static_cast<int>(view.num_kv_heads()),
              .head_dim = static_cast<int>(view.head_dim()),
              .token_stride = static_cast<int>(q.stride(0)),
              .head_stride = static_cast<int>(q.stride(1)),
              .num_seqs = batch.num_seqs,
              .num_decodes = batch.num_decodes,
              .max_blocks = static_cast<int>(batch.block_tables.extent(1)),
              .block_size = static_cast<int>(view.block_size()),
              .has_first_slots = batch.first_slots.defined(),
              .has_sinks = args.sinks.defined(),
              .window = args.window,
              .value_width = rotation_width(view.values),
              .scale = args.scale / static_cast<float>(rotation_width(view.keys)),
              .soft_cap = args.soft_cap},
      cache_(view, kCache),
      key_type_(template_argument(view.keys.elements.dtype())),
      value_type_(template_argument(view.values.elements.dtype())),
      key_dim_(padded_dim(view.keys)),
      value_dim_(padded_dim(view.values)),
      heads_of_kv_(common_.heads / common_.kv_heads) {
  common_.heads_of_kv = heads_of_kv_;
  PAGODA_CHECK(common_.head_dim <= 512, "[attention] heads wider than 512 have no kernel");
  const int head_values = std::max(key_dim_, value_dim_);
  decode_heads_ = divided_up(heads_of_kv_, divided_up(heads_of_kv_ * head_values, kMaxHeadValues));
  prompt_heads_ = divided_up(heads_of_kv_, divided_up(heads_of_kv_, prompt_rows()));
  tokens_at_once_ = prompt_rows() / prompt_heads_;
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int tokens = batch.host->query_start[seq + 1] - batch.host->query_start[seq];
    const int begin = batch.host->context_lens[seq] - tokens;
    if (tokens > kAttentionShortPart) {
      count_prompt(begin, tokens);
    } else {
      for (int i = 0; i < tokens; ++i) count_decode(begin + i);
    }
  }
}

// Returns the number of operations for tokens, the last of which is at `position`.
double AttentionPlan::flops_of(int num_tokens, int position) const {
  const int keys =
      std::min(position + 1, common_.window > 0 ? common_.window + num_tokens : position + 1);
  return 4.0 * num_tokens * common_.heads * common_.head_dim * std::max(keys, 0);
}

void AttentionPlan::count_decode(int position) {
  ++num_rows_;
  if (position < 0) return;  // padding
  num_partitions_ = std::max(num_partitions_, partitions_of(position, common_.window));
  decode_flops_ += flops_of(1, position);
}

void AttentionPlan::count_prompt(int begin_position, int num_tokens) {
  for (int first = 0; first < num_tokens; first += tokens_at_once_) {
    const int tokens = std::min(tokens_at_once_, num_tokens - first);
    const double flops = flops_of(tokens, begin_position + first + tokens - 1);
    if (prompts_.empty()) prompts_.emplace_back();
    if (prompts_.back().flops + flops > kMaxFlops && prompts_.back().num_groups > 0) {
      prompts_.push_back({.first_group = prompts_.back().first_group + prompts_.back().num_groups});
    }
    ++prompts_.back().num_groups;
    prompts_.back().flops += flops;
  }
}

// Returns the floats of threadgroup memory that attention_decode uses.
int AttentionPlan::decode_floats(int simd_groups) const {
  return decode_heads_ * (key_dim_ + value_dim_) + divided_up(decode_heads_, 2) * 4 +
         simd_groups * decode_heads_ * (value_dim_ + kAttentionTile + 4);
}

// Returns as many SIMD groups as there is room for, or fewer if these take no more rounds.
int AttentionPlan::decode_simd_groups(int threadgroups) const {
  const int tiles = divided_up(kAttentionPartition, kAttentionTile);
  int simd_groups = threadgroups <= kFewThreadgroups ? kSimdGroupsOfFew : kSimdGroupsOfMany;
  while (simd_groups > 1 && decode_floats(simd_groups) * 4 > kMaxThreadgroupBytes) --simd_groups;
  return divided_up(tiles, divided_up(tiles, simd_groups));
}

// Returns AttentionPrompt::kRows.
int AttentionPlan::prompt_rows() const {
  return common_.head_dim <= 128 ? 64 : common_.head_dim <= 256 ? 32 : 16;
}

GpuFunction AttentionPlan::function(std::string_view name) const {
  return {&kAttentionMetal,
          name,
          {key_type_, value_type_, template_argument(std::int64_t{common_.head_dim})}};
}

std::vector<GpuOperand> AttentionPlan::buffers() const {
  std::vector<GpuOperand> buffers = {
      input(kQueries),    input(cache_.keys()), input(cache_.values()),
      input(kQueryStart), input(kContextLens),  input(kBlockTables),
      input(kFirstSlots), input(kSlotMapping),  input(kSinks)};
  const int none = kContextLens;
  buffers.push_back(input(cache_.has_codes() ? cache_.key_scales() : none));
  buffers.push_back(input(cache_.has_codes() ? cache_.value_scales() : none));
  return buffers;
}

void AttentionPlan::add_decodes(GpuLaunch& launch) const {
  const int runs_of_heads = divided_up(heads_of_kv_, decode_heads_);
  const int simd_groups =
      decode_simd_groups(common_.kv_heads * runs_of_heads * num_partitions_ * num_rows_);
  AttentionParameters parameters = common_;
  parameters.heads_at_once = decode_heads_;
  parameters.runs_of_heads = runs_of_heads;
  parameters.num_partitions = num_partitions_;
  parameters.simd_groups = simd_groups;
  const bool is_merged = num_partitions_ > 1;
  GpuDispatch decode{.function = function("attention_decode"),
                     .buffers = buffers(),
                     .parameters = parameters,
                     .num_groups = {common_.kv_heads * runs_of_heads, num_partitions_, num_rows_},
                     .num_threads = simd_groups * 32,
                     .threadgroup_bytes = decode_floats(simd_groups) * 4};
  decode.buffers.push_back(is_merged ? scratch(0) : output(0));
  decode.buffers.push_back(is_merged ? scratch(1) : output(0));
  launch.dispatches.push_back(std::move(decode));
  launch.flops += decode_flops_;
  if (!is_merged) return;
  const auto records = static_cast<std::size_t>(num_rows_) * num_partitions_ * common_.heads;
  launch.scratch_bytes = {records * common_.head_dim * 4, records * 2 * 4};
  launch.dispatches.push_back(
      {.function = {&kAttentionMetal, "attention_merge"},
       .buffers = {input(kQueryStart), input(kContextLens), input(kSlotMapping), input(kSinks),
                   scratch(0), scratch(1), output(0)},
       .parameters = parameters,
       .num_groups = {common_.heads, num_rows_, 1},
       .num_threads = std::min(divided_up(common_.head_dim, 32) * 32,
                               static_cast<int>(kAttentionMergeThreads)),
       .threadgroup_bytes = 4 * (4 * kAttentionMergedAtOnce + 2 +
                                 (common_.value_width > 1 ? common_.head_dim : 0))});
}

void AttentionPlan::add_prompts(const PromptRange& range, GpuLaunch& launch) const {
  AttentionParameters parameters = common_;
  parameters.heads_at_once = prompt_heads_;
  parameters.runs_of_heads = divided_up(heads_of_kv_, prompt_heads_);
  parameters.tokens_at_once = tokens_at_once_;
  parameters.first_group = range.first_group;
  constexpr int kStage = 4096;
  const int scales = (cache_.has_key_scales() ? kAttentionPartition : 0) +
                     (cache_.has_value_scales() ? kAttentionPartition : 0);
  GpuDispatch prompt{
      .function = function("attention_prompt"),
      .buffers = buffers(),
      .parameters = parameters,
      .num_groups = {common_.kv_heads * parameters.runs_of_heads, range.num_groups, 1},
      .num_threads = kAttentionPromptThreads,
      .threadgroup_bytes =
          4 * (kStage + kAttentionTile * (prompt_rows() + 8) + kAttentionPartition + scales)};
  prompt.buffers.push_back(output(0));
  launch.dispatches.push_back(std::move(prompt));
  launch.flops += range.flops;
}

// Returns the bytes of a step, each counted once: the entries that queries see, the queries and the
// outputs.
double bytes_of(const Tensor& q, const KvView& view, const StepBatch& batch, int window) {
  double entries = 0;
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int queries = batch.host->query_start[seq + 1] - batch.host->query_start[seq];
    const int context = batch.host->context_lens[seq];
    entries += window > 0 ? std::min(context, queries + window - 1) : context;
  }
  return entries * static_cast<double>(view.bytes_per_token()) +
         8 * static_cast<double>(q.num_elements());
}

// Runs one op, or several that write to one output, one after the other.
Tensor run_on_metal(Exec& exec, const GpuOp& op, const Tensor& q, const KvView& view,
                    const StepBatch& batch, const AttentionArgs& args) {
  const AttentionPlan plan(q, view, batch, args);
  const std::size_t num_ops = std::max<std::size_t>(plan.prompts().size(), 1);
  Tensor out;
  for (std::size_t i = 0; i < num_ops; ++i) {
    GpuOp part = op;
    if (i > 0) {
      part.inputs.push_back(out);
      part.outputs[0].memory_of = static_cast<int>(part.inputs.size()) - 1;
    }
    if (i == 0 && plan.has_decodes()) plan.add_decodes(part.launch);
    if (i < plan.prompts().size()) plan.add_prompts(plan.prompts()[i], part.launch);
    part.launch.bytes = bytes_of(q, view, batch, args.window) / static_cast<double>(num_ops);
    out = run(exec, std::move(part))[0];
  }
  return out;
}

// Returns the parts of a step that the cpu backend's body reads, from the op's inputs.
StepBatch batch_of(std::span<const Tensor> in, const StepBatch& counts, bool has_first_slots) {
  StepBatch batch = counts;
  batch.query_start = in[kQueryStart];
  batch.context_lens = in[kContextLens];
  batch.block_tables = in[kBlockTables];
  batch.slot_mapping = in[kSlotMapping];
  if (has_first_slots) batch.first_slots = in[kFirstSlots];
  return batch;
}

HostBody host_body(const KvFormats& formats, const StepBatch& batch, const AttentionArgs& args) {
  StepBatch counts;
  counts.num_tokens = batch.num_tokens;
  counts.num_seqs = batch.num_seqs;
  counts.num_decodes = batch.num_decodes;
  counts.max_query_len = batch.max_query_len;
  counts.max_context_len = batch.max_context_len;
  return [counts, formats, has_first_slots = batch.first_slots.defined(),
          has_sinks = args.sinks.defined(), scale = args.scale, window = args.window,
          soft_cap = args.soft_cap](Exec& host, std::span<const Tensor> in) {
    AttentionArgs own{.scale = scale, .window = window, .soft_cap = soft_cap, .sinks = {}};
    if (has_sinks) own.sinks = in[kSinks];
    const KvView view = KvView::of(formats, in.subspan(kCache));
    return std::vector<Tensor>{
        cpu::attention(host, in[kQueries], view, batch_of(in, counts, has_first_slots), own)};
  };
}

}  // namespace

AttentionPath attention_path(const KvFormats& formats, std::int64_t /*head_dim*/) {
  return is_quantized(formats) ? AttentionPath::kAsRead : AttentionPath::kFloats;
}

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  GpuOp op{.name = "attention",
           .inputs = {q, batch.query_start, batch.context_lens, batch.block_tables,
                      batch.first_slots.defined() ? batch.first_slots : batch.context_lens,
                      batch.slot_mapping, args.sinks.defined() ? args.sinks : q},
           .outputs = {{DType::kFloat32, {q.extent(0), q.extent(1) * q.extent(2)}}}};
  for (const Tensor& array : view.arrays()) op.inputs.push_back(array);
  if (uses_kernels(exec)) return run_on_metal(exec, op, q, view, batch, args);
  op.host = host_body(view.formats(), batch, args);
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
