#include "backend/cpu/panel_layout.h"

#include <cstring>

#include "backend/cpu/cpu_weight.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"

namespace pagoda::cpu {
namespace {

constexpr int kColumns = kPanelColumns;
constexpr int kBlock = 32;

// A panel's 32 k of a block format, in the order in which cpu_weight.h draws them.
struct BytePanel {
  f16 scales[kColumns];
  std::int8_t q[kBlock][kColumns];
};
struct PairPanel {
  f16 scales[kColumns];
  std::uint8_t pairs[kBlock / 2][kColumns];
};
struct PairMinimumPanel {
  f16 scales[kColumns];
  f16 minima[kColumns];
  std::uint8_t pairs[kBlock / 2][kColumns];
};

// The files' blocks put q[i] and q[i + 16] into a byte; a panel puts q[2 i] and q[2 i + 1].
int nibble(const std::uint8_t* nibbles, int i) {
  return i < kBlock / 2 ? nibbles[i] & 15 : nibbles[i - kBlock / 2] >> 4;
}

template <typename Panel>
void put_pairs(const std::uint8_t* nibbles, int column, Panel& panel) {
  for (int i = 0; i < kBlock / 2; ++i) {
    panel.pairs[i][column] =
        static_cast<std::uint8_t>(nibble(nibbles, 2 * i) | nibble(nibbles, 2 * i + 1) << 4);
  }
}

void put(const BlockQ8_0& block, int column, BytePanel& panel) {
  panel.scales[column] = block.scale;
  for (int i = 0; i < kBlock; ++i) panel.q[i][column] = block.q[i];
}

void put(const BlockQ4_0& block, int column, PairPanel& panel) {
  panel.scales[column] = block.scale;
  put_pairs(block.nibbles, column, panel);
}

void put(const BlockQ4_1& block, int column, PairMinimumPanel& panel) {
  panel.scales[column] = block.scale;
  panel.minima[column] = block.minimum;
  put_pairs(block.nibbles, column, panel);
}

template <typename Block, typename Panel>
void pack_blocks(const PanelSource& source, std::byte* out) {
  static_assert(sizeof(Panel) == kColumns * sizeof(Block));
  const std::int64_t num_blocks = source.cols / kBlock;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    Panel panel{};
    for (int row = 0; row < source.num_rows; ++row) {
      Block block;
      std::memcpy(&block, source.rows + (row * num_blocks + b) * sizeof(Block), sizeof(Block));
      put(block, row, panel);
    }
    std::memcpy(out + b * sizeof(Panel), &panel, sizeof(Panel));
  }
}

template <typename Word>
void pack_plain(const PanelSource& source, std::byte* out) {
  for (std::int64_t k = 0; k < source.cols; ++k) {
    Word words[kColumns] = {};
    for (int row = 0; row < source.num_rows; ++row) {
      std::memcpy(&words[row], source.rows + (row * source.cols + k) * sizeof(Word), sizeof(Word));
    }
    std::memcpy(out + k * sizeof(words), words, sizeof(words));
  }
}

// The scalar codecs' arithmetic: a product, then a sum.
float value(const BytePanel& panel, int k, int column) {
  return to_float(panel.scales[column]) * static_cast<float>(panel.q[k][column]);
}

float value(const PairPanel& panel, int k, int column) {
  const int q = (panel.pairs[k / 2][column] >> (k % 2 * 4)) & 15;
  return to_float(panel.scales[column]) * static_cast<float>(q - 8);
}

float value(const PairMinimumPanel& panel, int k, int column) {
  const int q = (panel.pairs[k / 2][column] >> (k % 2 * 4)) & 15;
  const float product = to_float(panel.scales[column]) * static_cast<float>(q);
  return product + to_float(panel.minima[column]);
}

template <typename Panel>
void unpack_blocks(std::int64_t cols, const std::byte* in, int column, float* values) {
  for (std::int64_t b = 0; b < cols / kBlock; ++b) {
    Panel panel;
    std::memcpy(&panel, in + b * sizeof(Panel), sizeof(Panel));
    for (int k = 0; k < kBlock; ++k) values[b * kBlock + k] = value(panel, k, column);
  }
}

template <typename T>
void unpack_plain(std::int64_t cols, const std::byte* in, int column, float* values) {
  for (std::int64_t k = 0; k < cols; ++k) {
    T stored;
    std::memcpy(&stored, in + (k * kColumns + column) * sizeof(T), sizeof(T));
    values[k] = to_float(stored);
  }
}

}  // namespace

void pack_panel(const PanelSource& source, std::byte* panel) {
  switch (source.format) {
    case WeightFormat::kF32:
      return pack_plain<std::uint32_t>(source, panel);
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return pack_plain<std::uint16_t>(source, panel);
    case WeightFormat::kQ8_0:
      return pack_blocks<BlockQ8_0, BytePanel>(source, panel);
    case WeightFormat::kQ4_0:
      return pack_blocks<BlockQ4_0, PairPanel>(source, panel);
    case WeightFormat::kQ4_1:
      return pack_blocks<BlockQ4_1, PairMinimumPanel>(source, panel);
    default:
      PAGODA_CHECK(false, "[weight] a format without a panel");
  }
}

void unpack_column(WeightFormat format, std::int64_t cols, const std::byte* panel, int column,
                   float* values) {
  switch (format) {
    case WeightFormat::kF32:
      return unpack_plain<float>(cols, panel, column, values);
    case WeightFormat::kF16:
      return unpack_plain<f16>(cols, panel, column, values);
    case WeightFormat::kBF16:
      return unpack_plain<bf16>(cols, panel, column, values);
    case WeightFormat::kQ8_0:
      return unpack_blocks<BytePanel>(cols, panel, column, values);
    case WeightFormat::kQ4_0:
      return unpack_blocks<PairPanel>(cols, panel, column, values);
    case WeightFormat::kQ4_1:
      return unpack_blocks<PairMinimumPanel>(cols, panel, column, values);
    default:
      PAGODA_CHECK(false, "[weight] a format without a panel");
  }
}

}  // namespace pagoda::cpu
