#include "kv/kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pagoda {
namespace {

// Below this the bytes of the whole store safely fit an int64.
constexpr double kMaxBytes = 0x1p62;

Status check_layout(const KvLayout& layout, int num_blocks) {
  if (num_blocks <= 0 || layout.block_size <= 0) {
    return invalid_argument("[kv] expected blocks of at least one token, got {} of {}", num_blocks,
                            layout.block_size);
  }
  double bytes_per_token = 0;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerKvLayout& layer = layout.layers[i];
    if (layer.num_kv_heads <= 0 || layer.head_dim <= 0 || layer.window < 0) {
      return invalid_argument(
          "[kv] layer {}: expected positive heads and a window from 0, got {} x {}, window {}", i,
          layer.num_kv_heads, layer.head_dim, layer.window);
    }
    for (const KvFormat format : {layer.formats.keys, layer.formats.values}) {
      if (!fits(format, layer.head_dim)) {
        return unsupported(
            "[kv] layer {}: expected heads of an even number of dimensions for {}, "
            "got {}",
            i, kv_format_name(format), layer.head_dim);
      }
    }
    // No format takes more than float32.
    bytes_per_token += 8.0 * layer.num_kv_heads * layer.head_dim;
  }
  if (bytes_per_token * layout.block_size * num_blocks >= kMaxBytes) {
    return invalid_argument("[kv] {} blocks of {} tokens are more than memory can address",
                            num_blocks, layout.block_size);
  }
  return ok_status();
}

}  // namespace

KvStore::KvStore(KvLayout layout, int num_blocks)
    : layout_(std::move(layout)), num_blocks_(num_blocks), num_lanes_(layout_.num_lanes()) {
  std::int64_t most_bytes = 1;  // the most bytes of a slot in one array
  for (const LayerKvLayout& layer : layout_.layers)
    most_bytes = std::max(most_bytes, layer.bytes_per_token() / 2);
  slots_prefaulted_together_ = std::max<std::int64_t>(kPrefaultBytes / most_bytes, 1);
}

Result<KvStore> KvStore::create(Exec& exec, KvLayout layout, int num_blocks) {
  PAGODA_RETURN_IF_ERROR(check_layout(layout, num_blocks));
  KvStore store(std::move(layout), num_blocks);
  const int num_layers = static_cast<int>(store.layout_.layers.size());
  for (int i = 0; i < num_layers; ++i) {
    PAGODA_RETURN_IF_ERROR(store.add_layer(exec, i));
  }
  return store;
}

// Uses the view of an earlier layer of the same lane and form. If there is none, makes a view over
// the memory that it shares with earlier layers of the lane.
Status KvStore::add_layer(Exec& exec, int layer) {
  const LayerKvLayout& form = layout_.layers[layer];
  Tensor keys, values;
  for (int other = 0; other < layer; ++other) {
    if (layout_.lane_of(other) != layout_.lane_of(layer)) continue;
    const LayerKvLayout& known = layout_.layers[other];
    if (known.formats == form.formats && known.num_kv_heads == form.num_kv_heads &&
        known.head_dim == form.head_dim) {
      view_of_.push_back(view_of_[other]);
      return ok_status();
    }
    if (layout_.shares_keys(layer, other)) keys = view(other).keys.elements;
    if (layout_.shares_values(layer, other)) values = view(other).values.elements;
  }
  const Shape shape = {std::int64_t{num_blocks_} * layout_.num_parts(layer), layout_.block_size,
                       form.num_kv_heads, form.head_dim};
  KvView view;
  PAGODA_ASSIGN_OR_RETURN(view.keys, allocate_kv_entries(exec, form.formats.keys, shape, keys));
  PAGODA_ASSIGN_OR_RETURN(view.values,
                          allocate_kv_entries(exec, form.formats.values, shape, values));
  view_of_.push_back(num_views());
  views_.push_back(std::move(view));
  return ok_status();
}

bool KvStore::prefault(Exec& exec, std::int64_t first_slot, std::int64_t num_slots) {
  const std::int64_t all_slots = std::int64_t{num_blocks_} * block_size();
  const std::int64_t first = first_slot / slots_prefaulted_together_ * slots_prefaulted_together_;
  if (first > num_prefaulted_slots_) {
    num_prefaulted_slots_ = first;
    num_prefaulted_arrays_ = 0;
  }
  const std::int64_t begin = num_prefaulted_slots_;
  if (begin >= std::min(first_slot + num_slots, all_slots)) return false;
  const int index = num_prefaulted_arrays_ / 2;
  const KvView& view = views_[index];
  const int parts = num_parts(index);
  const KvEntries& entries = num_prefaulted_arrays_ % 2 == 0 ? view.keys : view.values;
  const Shape by_slot = {all_slots * parts, view.num_kv_heads(), entries.elements.extent(3)};
  const std::int64_t end = std::min(begin + slots_prefaulted_together_, all_slots);
  exec.prefault(entries.elements.view(by_slot).slice(0, begin * parts, end * parts));
  if (entries.scales.defined()) {
    const std::int64_t end_block = (end + block_size() - 1) / block_size();
    exec.prefault(entries.scales.slice(0, begin / block_size() * parts, end_block * parts));
  }
  if (++num_prefaulted_arrays_ == 2 * num_views()) {
    num_prefaulted_arrays_ = 0;
    num_prefaulted_slots_ = end;
  }
  return true;
}

void KvStore::rebind_view(int index, const KvView& view) {
  const KvArrays old = views_[index].arrays(), arrays = view.arrays();
  PAGODA_CHECK(old.size() == arrays.size(), fmt::format("[kv] view {}: expected {} arrays, got {}",
                                                        index, old.size(), arrays.size()));
  for (std::size_t i = 0; i < old.size(); ++i) {
    PAGODA_CHECK(arrays[i].shape() == old[i].shape() && arrays[i].dtype() == old[i].dtype(),
                 fmt::format("[kv] view {}: expected {} of {}, got {} of {}", index,
                             to_string(old[i].shape()), dtype_name(old[i].dtype()),
                             to_string(arrays[i].shape()), dtype_name(arrays[i].dtype())));
  }
  const KvView before = std::exchange(views_[index], view);
  if (num_views() == num_lanes_) return;
  for (KvView& other : views_) {
    for (KvEntries KvView::*entries : {&KvView::keys, &KvView::values}) {
      Tensor& elements = (other.*entries).elements;
      if (elements.buffer().get() == (before.*entries).elements.buffer().get())
        elements = elements.over((view.*entries).elements.buffer());
    }
  }
}

}  // namespace pagoda
