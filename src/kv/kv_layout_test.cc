#include "kv/kv_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace pagoda {
namespace {

KvLayout layout_of(const std::vector<int>& windows) {
  KvLayout layout;
  for (const int window : windows)
    layout.layers.push_back({.num_kv_heads = 1, .head_dim = 256, .window = window});
  return layout;
}

// Returns a layout in which every sixth layer sees all positions.
KvLayout gemma_like(int num_layers) {
  std::vector<int> windows;
  for (int i = 0; i < num_layers; ++i) windows.push_back(i % 6 == 5 ? 0 : 512);
  return layout_of(windows);
}

void expect_sound(const KvLayout& layout) {
  std::set<std::tuple<int, int, int>> places;
  for (int i = 0; i < static_cast<int>(layout.layers.size()); ++i) {
    const LayerKvLayout& layer = layout.layers[i];
    if (layer.source >= 0) continue;
    ASSERT_LT(layer.group, layout.num_groups());
    EXPECT_TRUE(places.insert({layer.group, layout.lane_of(i), layer.part}).second)
        << "layer " << i;
    const KvTable& table = layout.tables[layer.table];
    EXPECT_EQ(table.group, layer.group);
    EXPECT_EQ(table.part, layer.part);
    EXPECT_LT(layer.part, table.num_parts);
    EXPECT_TRUE(layout.group_windows[layer.group] == 0 ||
                layout.group_windows[layer.group] == layer.window);
  }
}

TEST(KvLayout, LayersOfOneKindAreOneGroupAndALaneEach) {
  for (const int window : {0, 512}) {
    KvLayout layout = layout_of({window, window, window});
    deal_into_groups(layout, 4096);
    expect_sound(layout);
    EXPECT_EQ(layout.group_windows, std::vector{window});
    EXPECT_EQ(layout.num_lanes(), 3);
    EXPECT_EQ(layout.bytes_per_block(), layout.bytes_per_token() * 16);
  }
}

TEST(KvLayout, AWindowAsLongAsTheContextIsNone) {
  KvLayout layout = gemma_like(26);
  deal_into_groups(layout, 512);
  EXPECT_EQ(layout.group_windows, std::vector{0});
  EXPECT_EQ(layout.num_lanes(), 26);
}

TEST(KvLayout, WindowsAreDealtIntoGroupsOfAsManyLanesAsLayersThatSeeAll) {
  KvLayout layout = gemma_like(26);  // 4 layers see all, 22 have a window
  deal_into_groups(layout, 32'768);
  expect_sound(layout);
  EXPECT_EQ(layout.num_lanes(), 4);
  EXPECT_EQ(layout.group_windows, (std::vector{0, 512, 512, 512, 512, 512, 512}));
  EXPECT_EQ(layout.bytes_per_block(), 16 * 4 * layout.layers[0].bytes_per_token());
  for (const auto& [num_layers, num_lanes] : {std::pair{34, 5}, {48, 8}, {62, 10}}) {
    KvLayout larger = gemma_like(num_layers);
    deal_into_groups(larger, 131'072);
    expect_sound(larger);
    EXPECT_EQ(larger.num_lanes(), num_lanes) << num_layers;
  }
}

// Empty places would cost the memory that windows save.
TEST(KvLayout, FewLanesAreLeftEmpty) {
  for (int num_full = 1; num_full < 40; ++num_full) {
    for (int num_windowed = 1; num_windowed < 40; ++num_windowed) {
      std::vector<int> windows(num_full, 0);
      windows.resize(num_full + num_windowed, 64);
      KvLayout layout = layout_of(windows);
      deal_into_groups(layout, 1000);
      expect_sound(layout);
      const auto num_groups_of_all = std::ranges::count(layout.group_windows, 0);
      const int num_places = layout.num_groups() * layout.num_lanes();
      EXPECT_LE(num_places - num_full - num_windowed, (num_full + num_windowed) / 7);
      EXPECT_LE(num_groups_of_all * layout.num_lanes() - num_full, num_full / 16);
    }
  }
}

// Layers that see all are stored as int8: two of them fit the place of one with a window.
TEST(KvLayout, SmallerEntriesShareAPlace) {
  KvLayout layout = gemma_like(26);
  for (LayerKvLayout& layer : layout.layers) {
    const KvFormat format = layer.window == 0 ? KvFormat::kInt8 : KvFormat::kBFloat16;
    layer.formats = {format, format};
  }
  deal_into_groups(layout, 32'768);
  expect_sound(layout);
  EXPECT_EQ(layout.num_lanes(), 2);
  EXPECT_EQ(layout.num_groups(), 1 + 11);
  EXPECT_EQ(layout.tables.size(), 2u + 11);
  EXPECT_EQ(layout.num_parts(5), 2);
  EXPECT_EQ(layout.num_parts(0), 1);
  EXPECT_TRUE(layout.shares_keys(0, 5));
  // A place has the size of the larger entries, plus the codes' scales.
  EXPECT_EQ(layout.bytes_per_block(), 2 * 16 * (2 * 2 * 256 + 2 * 2 * 2));
}

TEST(KvLayout, FormsThatShareLittleStayOneGroup) {
  KvLayout layout = layout_of({0, 64, 0, 64});
  for (LayerKvLayout& layer : layout.layers) {
    if (layer.window == 0) layer.head_dim = 160;  // only one of these fits a place
  }
  deal_into_groups(layout, 1000);
  EXPECT_EQ(layout.group_windows, std::vector{0});
  EXPECT_EQ(layout.num_lanes(), 4);
  EXPECT_EQ(layout.tables, std::vector<KvTable>(1));
  EXPECT_EQ(layout.bytes_per_block(), layout.bytes_per_token() * 16);
}

// As in Gemma 4: layers that see all have larger heads, and the last layers read entries of others.
TEST(KvLayout, LayersThatReadAnotherOnesEntriesFollowIt) {
  for (const int max_model_len : {64, 1000}) {
    KvLayout layout = layout_of({64, 64, 64, 64, 0, 64, 64, 0});
    for (LayerKvLayout& layer : layout.layers) layer.head_dim = layer.window == 0 ? 512 : 256;
    const KvLayout own = [&] {
      KvLayout first = layout;
      first.layers.resize(5);
      return first;
    }();
    layout.layers[5].source = layout.layers[6].source = 3;
    layout.layers[7].source = 4;
    KvLayout alone = own;
    deal_into_groups(layout, max_model_len);
    deal_into_groups(alone, max_model_len);
    expect_sound(layout);
    EXPECT_EQ(layout.num_groups(), max_model_len == 64 ? 1 : 3);
    EXPECT_EQ(layout.group_windows, alone.group_windows);
    EXPECT_EQ(layout.num_lanes(), alone.num_lanes());
    EXPECT_EQ(layout.bytes_per_token(), alone.bytes_per_token());
    EXPECT_EQ(layout.bytes_per_block(), alone.bytes_per_block());
    for (const auto& [layer, source] : {std::pair{5, 3}, {6, 3}, {7, 4}}) {
      EXPECT_EQ(layout.lane_of(layer), layout.lane_of(source));
      EXPECT_EQ(layout.layers[layer].part, layout.layers[source].part);
      EXPECT_EQ(layout.layers[layer].table, layout.layers[source].table);
      EXPECT_EQ(layout.layers[layer].source, source);
    }
  }
}

TEST(KvLayout, QueriesReadWhatTheirWindowsShow) {
  KvLayout layout = layout_of({64, 0, 0});
  layout.layers[2].source = 1;
  const std::int64_t bytes = layout.layers[0].bytes_per_token();
  EXPECT_EQ(layout.bytes_read(10), 3 * 10 * bytes);
  EXPECT_EQ(layout.bytes_read(100), (64 + 2 * 100) * bytes);
}

TEST(KvLayout, EachWindowHasGroupsOfItsOwnTheLongestFirst) {
  KvLayout layout = layout_of({64, 0, 128, 64, 0, 128});
  deal_into_groups(layout, 1000);
  expect_sound(layout);
  EXPECT_EQ(layout.group_windows, (std::vector{0, 128, 64}));
  EXPECT_EQ(layout.num_lanes(), 2);
}

}  // namespace
}  // namespace pagoda
