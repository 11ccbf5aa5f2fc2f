#include "ops/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/backend.h"
#include "ops/check_kv_view.h"

namespace pagoda {
namespace {

// Counts each sequence's keys and values once, beginning with the first key that its first query
// sees. Also counts the products of scores and of weighted values.
OpCall attention_call(const Tensor& q, const KvView& view, const StepBatch& batch, int window) {
  double entries = 0;
  double pairs = 0;  // pairs of a query and an entry that it sees
  for (int seq = 0; seq < batch.num_seqs; ++seq) {
    const int context = batch.host->context_lens[seq];
    const int queries = batch.host->query_start[seq + 1] - batch.host->query_start[seq];
    const int seen = window > 0 ? std::min(context, queries + window - 1) : context;
    entries += seen;
    for (int position = context - queries; position < context; ++position)
      pairs += window > 0 ? std::min(position + 1, window) : position + 1;
  }
  return {.op = "attention",
          .read_bytes = bytes_of(q) + entries * static_cast<double>(view.bytes_per_token()),
          .products = 2 * pairs * static_cast<double>(q.extent(1) * q.extent(2))};
}

}  // namespace

std::string_view attention_path_name(AttentionPath path) {
  switch (path) {
    case AttentionPath::kFloats:
      return "floats";
    case AttentionPath::kCodes:
      return "codes";
    case AttentionPath::kAsRead:
      return "as read";
    case AttentionPath::kDecoded:
      break;
  }
  return "decoded";
}

AttentionPath attention_path(Backend backend, const KvFormats& formats, std::int64_t head_dim) {
  if (computes_on_host(backend)) backend = Backend::kCpu;
  static constexpr Bodies<decltype(reference::attention_path)> kBodies{
      reference::attention_path, cpu::attention_path, gpu::attention_path};
  return kBodies.of(backend)(formats, head_dim);
}

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  PAGODA_CHECK(q.shape().rank() == 3 && q.extent(0) == batch.num_tokens &&
                   q.extent(2) == view.head_dim() && q.stride(2) == 1,
               fmt::format("[attention] q: expected {} x heads x {}, got {}", batch.num_tokens,
                           view.head_dim(), to_string(q.shape())));
  PAGODA_CHECK(q.extent(1) % view.num_kv_heads() == 0,
               fmt::format("[attention] q: expected a multiple of {} heads, got {}",
                           view.num_kv_heads(), q.extent(1)));
  check_kv_view("attention", view);
  PAGODA_CHECK(args.window >= 0 && args.soft_cap >= 0,
               fmt::format("[attention] expected a window and a soft cap of 0 or more, got {}, {}",
                           args.window, args.soft_cap));
  PAGODA_CHECK(!args.sinks.defined() || (args.sinks.dtype() == DType::kFloat32 &&
                                         args.sinks.shape() == Shape{q.extent(1)}),
               fmt::format("[attention] sinks: expected {} float32, got {} {}", q.extent(1),
                           to_string(args.sinks.shape()), dtype_name(args.sinks.dtype())));
  const OpTimer timer(exec, [&] { return attention_call(q, view, batch, args.window); });
  static constexpr Bodies<decltype(reference::attention)> kBodies{reference::attention,
                                                                  cpu::attention, gpu::attention};
  return kBodies.of(exec)(exec, q, view, batch, args);
}

}  // namespace pagoda
