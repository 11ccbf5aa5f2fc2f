#include "kv/kv_layout.h"

#include <algorithm>
#include <functional>
#include <map>

namespace pagoda {
namespace {

// At most one in so many of all places in lanes is empty, and one in so many of those of layers that
// see all, which long contexts fill.
constexpr int kEmptyOfAll = 7, kEmptyOfLongest = 16;

// Layers by window, those that see all of a context first, then the longest windows.
using LayersByWindow = std::map<int, std::vector<int>, std::greater<>>;
constexpr int kSeesAll = INT32_MAX;

int round_up(int number, int step) {
  return (number + step - 1) / step * step;
}

// Returns how many lanes there are: as many layers of a window as a group has.
int choose_num_lanes(const LayersByWindow& layers) {
  int num_layers = 0, most = 0;
  for (const auto& [window, some] : layers) {
    const int count = static_cast<int>(some.size());
    num_layers += count;
    most = std::max(most, count);
  }
  const int num_longest = static_cast<int>(layers.begin()->second.size());
  for (int num_lanes = most; num_lanes > 1; --num_lanes) {
    int num_places = 0;
    for (const auto& [window, some] : layers)
      num_places += round_up(static_cast<int>(some.size()), num_lanes);
    const int num_empty = num_places - num_layers;
    const int num_empty_longest = round_up(num_longest, num_lanes) - num_longest;
    if (num_empty * kEmptyOfAll <= num_layers && num_empty_longest * kEmptyOfLongest <= num_longest)
      return num_lanes;
  }
  return 1;
}

bool is_alike(const LayerKvLayout& a, const LayerKvLayout& b) {
  return a.formats == b.formats && a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim;
}

}  // namespace

int KvLayout::num_lanes() const {
  int num_lanes = 0;
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer)
    num_lanes = std::max(num_lanes, lane_of(layer) + 1);
  return num_lanes;
}

std::int64_t KvLayout::bytes_per_token() const {
  std::int64_t bytes = 0;
  for (const LayerKvLayout& layer : layers) bytes += layer.bytes_per_token();
  return bytes;
}

std::int64_t KvLayout::bytes_per_block() const {
  std::vector<std::int64_t> lanes(num_lanes());
  for (int layer = 0; layer < static_cast<int>(layers.size()); ++layer)
    lanes[lane_of(layer)] = layers[layer].bytes_per_token() * block_size;
  std::int64_t bytes = 0;
  for (const std::int64_t lane : lanes) bytes += lane;
  return bytes;
}

void deal_into_groups(KvLayout& layout, int max_model_len) {
  if (layout.layers.empty()) return;
  LayersByWindow by_window;
  bool all_alike = true;
  for (int i = 0; i < static_cast<int>(layout.layers.size()); ++i) {
    const LayerKvLayout& layer = layout.layers[i];
    const bool has_window = layer.window > 0 && layer.window < max_model_len;
    by_window[has_window ? layer.window : kSeesAll].push_back(i);
    all_alike &= is_alike(layer, layout.layers.front());
  }
  const auto window_of = [](int window) { return window == kSeesAll ? 0 : window; };
  layout.group_windows.clear();
  if (by_window.size() == 1 || !all_alike) {
    layout.group_windows.push_back(window_of(by_window.begin()->first));
    return;
  }
  const int num_lanes = choose_num_lanes(by_window);
  for (const auto& [window, layers] : by_window) {
    for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
      if (i % num_lanes == 0) layout.group_windows.push_back(window_of(window));
      layout.layers[layers[i]].group = layout.num_groups() - 1;
      layout.layers[layers[i]].lane = i % num_lanes;
    }
  }
}

}  // namespace pagoda
