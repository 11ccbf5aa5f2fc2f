// Attention over the paged cache as MLX operations: the sequences' entries are gathered by slot,
// then attended to at once for all decodes, and apart for each prefill chunk.
//
// Only slots that hold an entry of the sequence are gathered: past a shorter sequence's end its
// last entry stands in, which the mask deselects. So nothing that lies in other slots takes part,
// not even multiplied by zero.
#include "ops/attention/attention.h"

#include <mlx/fast.h>
#include <mlx/ops.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backend/mlx/mlx_exec.h"

namespace pagoda::mlx {
namespace {

// Consecutive sequences with equally many queries each, which attend in one product.
struct Group {
  int first_seq;
  int num_seqs;
  int first_token;
  int num_queries;  // of each sequence
  int num_keys;     // of the sequence that needs most
};

// The first position that the sequence's queries see.
int first_key(const HostBatch& host, int seq, int window) {
  const int first_position = host.positions[host.query_start[seq]];
  return window > 0 ? std::max(0, first_position - window + 1) : 0;
}

Group group_of(const HostBatch& host, int first_seq, int num_seqs, int window) {
  const int first_token = host.query_start[first_seq];
  Group group{first_seq, num_seqs, first_token, host.query_start[first_seq + 1] - first_token, 1};
  for (int seq = first_seq; seq < first_seq + num_seqs; ++seq) {
    group.num_keys =
        std::max(group.num_keys, host.context_lens[seq] - first_key(host, seq, window));
  }
  return group;
}

std::vector<Group> groups_of(const HostBatch& host, int window) {
  std::vector<Group> groups;
  if (host.num_decodes > 0) groups.push_back(group_of(host, 0, host.num_decodes, window));
  for (int seq = host.num_decodes; seq < host.num_seqs(); ++seq) {
    if (host.query_start[seq + 1] > host.query_start[seq])
      groups.push_back(group_of(host, seq, 1, window));
  }
  return groups;
}

struct Task {
  MlxExec& exec;
  const StepBatch& batch;
  const AttentionArgs& args;
  Group group;
};

// The slots of a group's keys, [num_seqs * num_keys].
std::vector<std::int32_t> slots_of(const Task& task, std::int64_t block_size) {
  const HostBatch& host = *task.batch.host;
  std::vector<std::int32_t> slots;
  slots.reserve(static_cast<std::size_t>(task.group.num_seqs) * task.group.num_keys);
  for (int seq = task.group.first_seq; seq < task.group.first_seq + task.group.num_seqs; ++seq) {
    const std::int32_t* table =
        host.block_tables.data() + static_cast<std::size_t>(seq) * host.max_blocks;
    const int first = first_key(host, seq, task.args.window);
    const int last = std::max(0, host.context_lens[seq] - 1);
    for (int i = 0; i < task.group.num_keys; ++i) {
      const std::int64_t position = std::min(first + i, last);
      slots.push_back(static_cast<std::int32_t>(table[position / block_size] * block_size +
                                                position % block_size));
    }
  }
  return slots;
}

enum SharedArray { kSlots, kMask };

MlxExec::Variant variant_of(const Task& task, SharedArray which, std::int64_t block_size) {
  return {which, task.group.first_seq, task.args.window, block_size};
}

mx::array upload_ints(std::span<const std::int32_t> values, const mx::Shape& shape) {
  return mx::array(values.begin(), shape, mx::int32);
}

// Entries of one cache array for a group: [num_seqs, num_kv_heads, num_keys, head_dim] float32
mx::array gather_entries(const Task& task, const Tensor& cache) {
  const std::int64_t block_size = cache.extent(1);
  const mx::array slots = task.exec.once_a_step(
      {task.batch.block_tables, task.batch.context_lens}, variant_of(task, kSlots, block_size),
      [&] {
        return upload_ints(slots_of(task, block_size), {task.group.num_seqs, task.group.num_keys});
      });
  const mx::array entries = mx::take(mx::flatten(array_of(cache), 0, 1), slots, 0);
  return mx::astype(mx::swapaxes(entries, 1, 2), mx::float32);
}

// Which keys a query sees: [num_seqs, 1, num_queries, num_keys] bool
mx::array mask_of(const Task& task) {
  const HostBatch& host = *task.batch.host;
  const Group& group = task.group;
  std::vector<std::int32_t> first_keys;
  first_keys.reserve(group.num_seqs);
  for (int i = 0; i < group.num_seqs; ++i)
    first_keys.push_back(first_key(host, group.first_seq + i, task.args.window));
  const std::span<const std::int32_t> positions(host.positions);
  const auto own = positions.subspan(group.first_token,
                                     static_cast<std::size_t>(group.num_seqs) * group.num_queries);
  const mx::array query = upload_ints(own, {group.num_seqs, 1, group.num_queries, 1});
  const mx::array key =
      mx::add(upload_ints(first_keys, {group.num_seqs, 1, 1, 1}), mx::arange(group.num_keys));
  mx::array past = mx::less_equal(key, query);
  if (task.args.window == 0) return past;
  return mx::logical_and(past, mx::greater(key, mx::subtract(query, mx::array(task.args.window))));
}

// softmax(cap(scale * q k^T)) v by its parts. q [num_seqs, heads, num_queries, head_dim], k and v
// [num_seqs, num_kv_heads, num_keys, head_dim]; like q.
mx::array attend_capped(const Task& task, const mx::array& q, const mx::array& k,
                        const mx::array& v, const mx::array& mask) {
  const int kv_heads = k.shape(1);
  const int heads_per_kv = q.shape(1) / kv_heads;
  const auto cap = mx::array(task.args.soft_cap);
  const mx::array grouped =
      mx::unflatten(mx::multiply(q, mx::array(task.args.scale)), 1, {kv_heads, heads_per_kv});
  mx::array scores = mx::matmul(grouped, mx::swapaxes(mx::expand_dims(k, 2), -1, -2));
  scores = mx::multiply(cap, mx::tanh(mx::divide(scores, cap)));
  scores = mx::where(mx::expand_dims(mask, 1), scores,
                     mx::array(-std::numeric_limits<float>::infinity()));
  if (task.args.sinks.defined()) {
    mx::Shape column = scores.shape();
    column.back() = 1;
    const mx::array sinks =
        mx::reshape(array_of(task.args.sinks), {1, kv_heads, heads_per_kv, 1, 1});
    scores = mx::concatenate({scores, mx::broadcast_to(sinks, column)}, -1);
  }
  // The sink's column has done its part in the denominator.
  mx::array weights = mx::softmax(scores, -1, /*precise=*/true);
  mx::Shape keys = weights.shape();
  keys.back() = task.group.num_keys;
  weights = mx::slice(weights, mx::Shape(keys.size(), 0), keys);
  return mx::flatten(mx::matmul(weights, mx::expand_dims(v, 2)), 1, 2);
}

// The group's part of the output: [num_seqs * num_queries, heads * head_dim] float32
mx::array attend(const Task& task, const mx::array& queries, const KvView& view) {
  const Group& group = task.group;
  const int num_tokens = group.num_seqs * group.num_queries;
  const int heads = queries.shape(1);
  const int head_dim = queries.shape(2);
  mx::array q = mx::slice(queries, {group.first_token, 0, 0},
                          {group.first_token + num_tokens, heads, head_dim});
  q = mx::swapaxes(mx::reshape(q, {group.num_seqs, group.num_queries, heads, head_dim}), 1, 2);
  const mx::array k = gather_entries(task, view.keys);
  const mx::array v = gather_entries(task, view.values);
  const mx::array mask =
      task.exec.once_a_step({task.batch.block_tables, task.batch.positions},
                            variant_of(task, kMask, 0), [&] { return mask_of(task); });
  mx::array out = q;
  if (task.args.soft_cap > 0) {
    out = attend_capped(task, q, k, v, mask);
  } else {
    std::optional<mx::array> sinks;
    if (task.args.sinks.defined()) sinks = array_of(task.args.sinks);
    out = mx::fast::scaled_dot_product_attention(q, k, v, task.args.scale, "array", mask, sinks);
  }
  return mx::reshape(mx::swapaxes(out, 1, 2), {num_tokens, heads * head_dim});
}

}  // namespace

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  const Shape shape{q.extent(0), q.extent(1) * q.extent(2)};
  return mlx_exec(exec).build("attention", q.dtype(), shape, [&] {
    const mx::array queries = mx::astype(array_of(q), mx::float32);
    std::vector<mx::array> parts;
    for (const Group& group : groups_of(*batch.host, args.window)) {
      parts.push_back(attend({mlx_exec(exec), batch, args, group}, queries, view));
    }
    const mx::array out = parts.size() == 1 ? parts[0] : mx::concatenate(std::move(parts), 0);
    return mx::astype(out, to_mlx(q.dtype()));
  });
}

}  // namespace pagoda::mlx
