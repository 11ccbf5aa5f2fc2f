// The cpu attention's inner loops on machines with AMX's bfloat16 tiles: operands as in
// bf16_dots-inl.h, and the arithmetic of tile_products-inl.h.
//
// A block is 32 dimensions of a key or 32 positions of a value, from a multiple of 32 on. A row may
// see only a part of a block, or an entry may end within it. Then the rest is 0 in one operand and
// finite in the other. Few rows compute the same chains with vectors.
#if defined(PAGODA_TILE_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_TILE_DOTS_INL_H
#undef PAGODA_TILE_DOTS_INL_H
#else
#define PAGODA_TILE_DOTS_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "ops/attention/cpu/bf16_dots-inl.h"

#if PAGODA_HAS_PAIR_DOTS

#include <immintrin.h>

#include "ops/attention/cpu/tile_products-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// While a TileSession lives, its thread's tile registers have their shapes. In the thread's
// vectors, numbers below 2^-126 count as 0, as in tiles.
class TileSession {
 public:
  TileSession() : registers_(shapes_of_pairs()), control_(_mm_getcsr()) {
    constexpr unsigned int kResultsToZero = 0x8000, kOperandsToZero = 0x0040;
    _mm_setcsr(control_ | kResultsToZero | kOperandsToZero);
  }
  ~TileSession() { _mm_setcsr(control_); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;

 private:
  const TileRegisters registers_;
  const unsigned int control_;
};

struct TileDots : Bf16Dots {
  static constexpr int kPositions = 2 * kPairsOfBlock;
  static constexpr bool kMultipliesTiles = true;
  using Session = TileSession;
  static constexpr int kMostTileRows = 2 * kTileRows;

  // Returns how many of the `left` rows Values::sum_rows() takes next: 32, or at most 16.
  static constexpr int rows_together(int left) {
    return left >= kMostTileRows ? kMostTileRows : std::min(left, kTileRows);
  }

  // The two chains of a block, for few rows.
  template <int kRows, int kVectors>
  struct BlockSums : SumTile<TileDots, kRows, kVectors> {
    static constexpr int kMostRows = 8 / kVectors;  // rows that registers have room for
    V first[kRows][kVectors], second[kRows][kVectors];

    HWY_INLINE void begin_block() {
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v) first[r][v] = second[r][v] = hn::Zero(D());
      }
    }
    HWY_INLINE void add(const Unit* x, std::int64_t row_stride, const VWords* y) {
      V y_first[kVectors], y_second[kVectors];
      PAGODA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        y_first[v] = Words<bf16>::first(y[v]);
        y_second[v] = Words<bf16>::second(y[v]);
      }
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const VWords pair = broadcast(x[r * row_stride]);
        const V x_first = Words<bf16>::first(pair), x_second = Words<bf16>::second(pair);
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          first[r][v] = hn::MulAdd(x_first, y_first[v], first[r][v]);
          second[r][v] = hn::MulAdd(x_second, y_second[v], second[r][v]);
        }
      }
    }
    HWY_INLINE void end_block() {
      PAGODA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        PAGODA_UNROLL
        for (int v = 0; v < kVectors; ++v)
          this->sums[r][v] = hn::Add(this->sums[r][v], hn::Add(first[r][v], second[r][v]));
      }
    }
    // Does the same for sums that are in memory.
    HWY_INLINE void begin_block_of(const float* /*from*/, std::int64_t /*row_stride*/) {
      begin_block();
    }
    HWY_INLINE void end_block_of(float* to, std::int64_t row_stride) {
      this->load(to, row_stride);
      end_block();
      this->store(to, row_stride);
    }
  };

  // Computes the scores of `rows` rows, at most kMostTileRows, with num_positions positions of a
  // tile. Both are rounded up to multiples of 16; the additional scores mean nothing.
  static HWY_INLINE void score_rows(const ScoreArgs<TileDots>& args, int rows, int num_positions,
                                    TileAhead& lines) {
    TileProduct product{
        .a = args.queries,
        .a_stride = args.row_stride,
        .b = args.tile,
        .b_stride = kTilePositions,
        .num_blocks = static_cast<int>((args.num_words + kPairsOfBlock - 1) / kPairsOfBlock),
        .sums = args.scores,
        .sums_stride = kRangePositions};
    for (int p = 0; p < num_positions; p += 2 * kTileColumns) {
      const bool is_narrow = num_positions - p <= kTileColumns;
      if (rows > kTileRows) {
        is_narrow ? multiply_tiles<2, 1>(product, lines) : multiply_tiles<2, 2>(product, lines);
      } else {
        is_narrow ? multiply_tiles<1, 1>(product, lines) : multiply_tiles<1, 2>(product, lines);
      }
      product.b += 2 * kTileColumns;
      product.sums += 2 * kTileColumns;
    }
  }

  // Does what Bf16Dots::weigh() does, but all positions of the range that a row does not see get
  // weight 0.
  template <int kRows>
  static HWY_INLINE void weigh(float* scores, const Visible* visible, float* largest,
                               float* totals) {
    weigh_seen<kRows>(scores, visible, largest, totals);
    for (int r = 0; r < kRows; ++r) {
      auto* const weights = reinterpret_cast<std::uint16_t*>(scores + r * kRangePositions);
      clear_weights(weights, 0, visible[r].begin);
      clear_weights(weights, visible[r].end, kRangePositions);
    }
  }

  // A range's values of one head, in whole blocks.
  class Values : public Bf16Values<kRangePositions, true> {
   public:
    static std::int64_t floats(const AttentionCall& call) {
      return Bf16Values::floats(call) + kTileRows * call.padded_dim();
    }
    Values(const AttentionCall& call, float* memory)
        : Bf16Values(call, memory), some_(memory + Bf16Values::floats(call)) {}

    void load(const std::byte* entries, const std::int64_t* offsets, Visible positions,
              TileAhead& lines) {
      Bf16Values::load(entries, offsets, positions, lines);
      for (int p = positions.begin / 2 * 2; p % kPositions != 0; p -= 2) clear(p - 2);
      for (int p = (positions.end + 1) / 2 * 2; p % kPositions != 0; p += 2) clear(p);
    }

    // Computes the sums of `count` rows, as rows_together() returns, over whole blocks of
    // positions. REQUIRES: all rows see the positions, or are_finite(positions).
    void sum_rows(int count, const WeighedRows& rows, Visible positions, TileAhead& lines) const {
      if (count == kMostTileRows) return sum_tiles<2>(rows, positions, lines);
      if (count == kTileRows) return sum_tiles<1>(rows, positions, lines);
      sum_tiles<1>({.weights = rows.weights, .sums = some_}, positions, lines);
      std::copy_n(some_, count * call_.padded_dim(), rows.sums);
    }

    // Adds the positions that one row sees.
    void add_one(const WeighedRows& row, Visible positions) const {
      for (int block = positions.begin / kPositions * kPositions; block < positions.end;
           block += kPositions) {
        for (std::int64_t d = 0; d < call_.padded_dim(); d += kLanes) {
          add_block(row, block, positions, d);
        }
      }
    }

   private:
    void clear(int pair) {
      for (std::int64_t d = 0; d < call_.padded_dim(); d += kPanelDims)
        std::fill_n(at(pair, d), kPanelDims, 0u);
    }

    template <int kRowTiles>
    void sum_tiles(const WeighedRows& rows, Visible positions, TileAhead& lines) const {
      static_assert(kPanelDims == 2 * kTileColumns);
      TileProduct product{
          .a = reinterpret_cast<const std::uint32_t*>(rows.weights) + positions.begin / 2,
          .a_stride = kRangePositions,
          .b_stride = kPanelDims,
          .num_blocks = (positions.end - positions.begin) / kPositions,
          .sums = rows.sums,
          .sums_stride = call_.padded_dim()};
      for (std::int64_t d = 0; d < call_.padded_dim(); d += kPanelDims) {
        product.b = at(positions.begin, d);
        multiply_tiles<kRowTiles, 2>(product, lines);
        product.sums += kPanelDims;
      }
    }

    // Adds the positions of a block that the row sees; the others may be NaN.
    void add_block(const WeighedRows& row, int block, Visible positions, std::int64_t dim) const {
      const auto* weights = reinterpret_cast<const std::uint32_t*>(row.weights);
      BlockSums<1, 1> sums;
      sums.begin_block();
      for (int p = block; p < block + kPositions; p += 2) {
        const auto sees = [&](int position) {
          return positions.begin <= position && position < positions.end;
        };
        const std::uint32_t seen = (sees(p) ? 0xffffu : 0) | (sees(p + 1) ? 0xffff0000u : 0);
        const VWords values[1] = {
            hn::And(hn::LoadU(DWords(), at(p, dim)), hn::Set(DWords(), seen))};
        sums.add(weights + p / 2, 0, values);
      }
      sums.end_block_of(row.sums + dim, 0);
    }

    float* some_;  // [kTileRows, padded_dim], the sums of rows that fill no tile
  };
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PAGODA_HAS_PAIR_DOTS
#endif  // the target's pass
