#include "kv/kv_layout.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace pagoda {
namespace {

// At most one place is empty per this many used ones: of all places, and of those of the layers
// with the longest window. Long contexts mostly use the latter.
constexpr int kEmptyOfAll = 7, kEmptyOfLongest = 16;
// A block takes at most this many times the memory that its largest kind of layers needs. Otherwise
// kinds share too little, and the layers stay one group.
constexpr double kMostBytes = 1.5;

constexpr int kSeesAll = INT32_MAX;

// The layers with one window and one form of entries.
struct Kind {
  int window = 0;
  LayerKvLayout form;
  std::vector<int> layers;
  int num_parts = 1;  // layers that a place holds

  int num_layers() const { return static_cast<int>(layers.size()); }
  // Returns how many groups of num_lanes lanes the layers fill.
  int num_groups(int num_lanes) const {
    const int of_group = num_lanes * num_parts;
    return (num_layers() + of_group - 1) / of_group;
  }
};

bool is_alike(const LayerKvLayout& a, const LayerKvLayout& b) {
  return a.formats == b.formats && a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim;
}

std::int64_t element_bytes(KvFormat format, const LayerKvLayout& layer) {
  return kv_entry_bytes(format, layer.head_dim) * layer.num_kv_heads;
}

// Returns the kinds of layers: those that see all of a context first, then by decreasing window.
std::vector<Kind> kinds_of(const KvLayout& layout, int max_model_len) {
  std::vector<Kind> kinds;
  for (int i = 0; i < static_cast<int>(layout.layers.size()); ++i) {
    const LayerKvLayout& layer = layout.layers[i];
    if (layer.source >= 0) continue;
    const int window = layer.window > 0 && layer.window < max_model_len ? layer.window : kSeesAll;
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& known) {
      return known.window == window && is_alike(known.form, layer);
    });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {.window = window, .form = layer});
    kind->layers.push_back(i);
  }
  std::ranges::stable_sort(kinds, std::greater(), &Kind::window);
  return kinds;
}

// Sets how many layers of each kind fit a place, which is as large as the largest kind's layers.
void set_parts(std::vector<Kind>& kinds) {
  std::int64_t keys = 0, values = 0;
  for (const Kind& kind : kinds) {
    keys = std::max(keys, element_bytes(kind.form.formats.keys, kind.form));
    values = std::max(values, element_bytes(kind.form.formats.values, kind.form));
  }
  for (Kind& kind : kinds) {
    kind.num_parts =
        static_cast<int>(std::min(keys / element_bytes(kind.form.formats.keys, kind.form),
                                  values / element_bytes(kind.form.formats.values, kind.form)));
  }
}

// Returns the number of lanes, which is the number of places of a group.
int choose_num_lanes(const std::vector<Kind>& kinds) {
  int most = 0;
  for (const Kind& kind : kinds) most = std::max(most, kind.num_layers());
  for (int num_lanes = most; num_lanes > 1; --num_lanes) {
    double all = 0, empty = 0, all_longest = 0, empty_longest = 0;  // places
    for (const Kind& kind : kinds) {
      const double wanted = static_cast<double>(kind.num_layers()) / kind.num_parts;
      const double left = kind.num_groups(num_lanes) * num_lanes - wanted;
      all += wanted;
      empty += left;
      if (kind.window != kinds.front().window) continue;
      all_longest += wanted;
      empty_longest += left;
    }
    if (empty * kEmptyOfAll <= all && empty_longest * kEmptyOfLongest <= all_longest)
      return num_lanes;
  }
  return 1;
}

void deal(const Kind& kind, int num_lanes, KvLayout& layout) {
  const int window = kind.window == kSeesAll ? 0 : kind.window;
  const int of_group = num_lanes * kind.num_parts;
  for (int i = 0; i < kind.num_layers(); ++i) {
    const int place = i % of_group;
    LayerKvLayout& layer = layout.layers[kind.layers[i]];
    if (place == 0) layout.group_windows.push_back(window);
    layer.group = layout.num_groups() - 1;
    layer.lane = place % num_lanes;
    layer.part = place / num_lanes;
    const KvTable table = {.group = layer.group, .part = layer.part, .num_parts = kind.num_parts};
    if (layout.tables.empty() || layout.tables.back() != table) layout.tables.push_back(table);
    layer.table = static_cast<int>(layout.tables.size()) - 1;
  }
}

}  // namespace

bool KvLayout::shares_keys(int layer, int other) const {
  return element_bytes(layers[layer].formats.keys, layers[layer]) * num_parts(layer) ==
         element_bytes(layers[other].formats.keys, layers[other]) * num_parts(other);
}

bool KvLayout::shares_values(int layer, int other) const {
  return element_bytes(layers[layer].formats.values, layers[layer]) * num_parts(layer) ==
         element_bytes(layers[other].formats.values, layers[other]) * num_parts(other);
}

int KvLayout::num_lanes() const {
  int num_lanes = 0;
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer)
    num_lanes = std::max(num_lanes, lane_of(layer) + 1);
  return num_lanes;
}

std::int64_t KvLayout::bytes_per_token() const {
  std::int64_t bytes = 0;
  for (const LayerKvLayout& layer : layers) bytes += layer.source < 0 ? layer.bytes_per_token() : 0;
  return bytes;
}

std::int64_t KvLayout::bytes_read(std::int64_t num_positions) const {
  std::int64_t bytes = 0;
  for (const LayerKvLayout& layer : layers) {
    const std::int64_t seen =
        layer.window > 0 ? std::min<std::int64_t>(layer.window, num_positions) : num_positions;
    bytes += seen * layer.bytes_per_token();
  }
  return bytes;
}

// Counts, in each lane, one layer of each form: its scales, and the elements that it does not share
// with an earlier layer.
std::int64_t KvLayout::bytes_per_block() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const LayerKvLayout& layer = layers[i];
    bool has_keys = false, has_values = false, is_known = false;
    for (int other = 0; other < i; ++other) {
      if (lane_of(other) != lane_of(i)) continue;
      is_known |= is_alike(layers[other], layer);
      has_keys |= shares_keys(i, other);
      has_values |= shares_values(i, other);
    }
    if (is_known) continue;
    const std::int64_t keys = element_bytes(layer.formats.keys, layer);
    const std::int64_t values = element_bytes(layer.formats.values, layer);
    const std::int64_t scales = layer.bytes_per_token() - keys - values;
    bytes += ((has_keys ? 0 : keys) + (has_values ? 0 : values) + scales) * num_parts(i);
  }
  return bytes * block_size;
}

void deal_into_groups(KvLayout& layout, int max_model_len) {
  if (layout.layers.empty()) return;
  std::vector<Kind> kinds = kinds_of(layout, max_model_len);
  const int longest = kinds.front().window;
  const KvLayout apart = layout;
  layout.group_windows.clear();
  if (longest != kinds.back().window) {
    set_parts(kinds);
    const int num_lanes = choose_num_lanes(kinds);
    layout.tables.clear();
    for (const Kind& kind : kinds) deal(kind, num_lanes, layout);
    for (LayerKvLayout& layer : layout.layers) {
      if (layer.source < 0) continue;
      const int source = layer.source;
      layer = layout.layers[source];
      layer.source = source;
    }
    std::int64_t largest = 0;
    for (const Kind& kind : kinds)
      largest = std::max(largest, kind.form.bytes_per_token() * kind.num_parts);
    const std::int64_t all = largest * num_lanes * layout.block_size;
    if (static_cast<double>(layout.bytes_per_block()) <= kMostBytes * static_cast<double>(all))
      return;
    layout = apart;
    layout.group_windows.clear();
  }
  layout.group_windows.push_back(longest == kSeesAll ? 0 : longest);
}

}  // namespace pagoda
