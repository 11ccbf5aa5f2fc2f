#include "ops/linear/linear_product.h"

#include <algorithm>
#include <numeric>

#include "backend/cpu/prefetch_level.h"
#include "ops/linear/kernel_choice.h"
#include "ops/linear/linear.h"

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kTileBytesPerPass = std::int64_t{832} << 10;
// The best of 0.5 to 4 MB on AMX, where products write more at a time, and read x more often.
constexpr std::int64_t kTileBytesPerAmxPass = std::int64_t{1152} << 10;
// Values of x worth a fork: a core rounds one or two per nanosecond if other cores wrote them.
constexpr std::int64_t kForkRounding = 1 << 12;
// With at least so many rows per thread, each thread gets a block of its own. It then reads all
// weights, and so many rows hide the time that this takes.
constexpr std::int64_t kRowsOfItsOwn = 96;
// Pieces of work per thread, if there are enough rows. So threads that run twice as fast as others,
// because no other process shares their cores, can take over the others' last pieces.
constexpr std::int64_t kPiecesPerThread = 8;
// The fewest rows of a block, if there are several. Each block decodes all weights, and so many
// rows hide the time that this takes.
constexpr std::int64_t kLeastBlockRows = 128;
// Enough rows for every kernel to use its highest tiles.
constexpr std::int64_t kManyRows = 1 << 10;
// A multiple of the heights of all tiles but the highest.
constexpr std::int64_t kRowGrain = 12;

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Returns the number of blocks that the rows are divided into. Each block is multiplied with
// `num_pieces` pairs of panels; in gated_linear, with so many pairs of both gate and up.
std::int64_t num_row_blocks(std::int64_t num_rows, std::int64_t num_pieces, int num_threads) {
  if (num_rows >= num_threads * kRowsOfItsOwn) return num_threads;
  const std::int64_t wanted = (kPiecesPerThread * num_threads + num_pieces - 1) / num_pieces;
  return std::clamp(num_rows / kLeastBlockRows, std::int64_t{1}, wanted);
}

}  // namespace

int row_tile(const Exec& exec) {
  // The height is the same for every format.
  const KernelChoice& choice = kernels_of(exec, PanelKind::kQ8_0);
  return choice.kernels->most_rows(choice.layout, kManyRows);
}

LinearProduct::LinearProduct(Exec& exec, const Weight& weight, const Tensor& x)
    : exec_(exec), weight_(packed(weight)), x_(x), cols_(weight.cols) {
  const std::int64_t tokens = x.extent(0);
  const std::int64_t piece_columns = 2 * kPanelColumns * (weight_.is_gated() ? 2 : 1);
  const std::int64_t num_pieces = (weight.rows + piece_columns - 1) / piece_columns;
  const std::int64_t blocks = num_row_blocks(tokens, num_pieces, exec.num_threads());
  most_blocks_ = blocks;
  const std::int64_t grain = std::lcm(kRowGrain, cpu::row_tile(exec));
  const bool is_amx = isa_of(exec) == CpuIsa::kAmx;
  const std::int64_t bytes = is_amx ? kTileBytesPerAmxPass : kTileBytesPerPass;
  const std::int64_t least = is_amx ? round_up(kLeastBlockRows, grain) : grain;
  const std::int64_t fitting = std::max(bytes / (2 * cols_), least);
  const std::int64_t most_rows = blocks * (fitting / grain * grain);
  const std::int64_t num_passes = std::max((tokens + most_rows - 1) / most_rows, std::int64_t{1});
  rows_per_pass_ = round_up((tokens + num_passes - 1) / num_passes, blocks * grain);
  block_rows_ = rows_per_pass_ / blocks;
}

RowBlock LinearProduct::block(std::int64_t index) const {
  const std::int64_t first = index * block_rows_;
  return {first, std::min(block_rows_, num_rows_ - first)};
}

std::int64_t LinearProduct::grain_pairs(std::int64_t num_pairs) const {
  const std::int64_t pair_work = num_rows_ * cols_ * 2 * kPanelColumns;
  if (num_pairs * pair_work >= exec_.num_threads() * kForkWork) return 1;
  return std::max(kForkWork / pair_work, std::int64_t{1});
}

const RowTiles* LinearProduct::find_tiles(PanelKind kind) const {
  const KernelChoice& choice = kernels_of(exec_, kind);
  for (int i = 0; i < num_layouts_; ++i) {
    if (tiles_[i].kernels == choice.kernels && tiles_[i].layout == choice.layout) return &tiles_[i];
  }
  return nullptr;
}

void LinearProduct::plan_tiles() {
  num_layouts_ = 0;
  for (const WeightSegment& segment : weight_.segments()) {
    if (find_tiles(segment.layout.kind) != nullptr) continue;
    PAGODA_CHECK(num_layouts_ < kMostLayouts, "[linear] more layouts than there are");
    const KernelChoice& choice = kernels_of(exec_, segment.layout.kind);
    tiles_[num_layouts_++] = cpu::plan_tiles(choice, num_rows_, cols_);
  }
}

std::int64_t LinearProduct::row_grain() const {
  std::int64_t grain = 1;
  for (int i = 0; i < num_layouts_; ++i) grain = std::lcm(grain, tiles_[i].tile_rows);
  return grain;
}

std::int64_t LinearProduct::tile_memory() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < num_layouts_; ++i) bytes += tiles_[i].num_bytes();
  return bytes;
}

bool LinearProduct::is_single_tile() const {
  for (int i = 0; i < num_layouts_; ++i) {
    if (tiles_[i].num_tiles > 1) return false;
  }
  return true;
}

void LinearProduct::take_rows(std::int64_t first, std::int64_t count) {
  first_row_ = first;
  num_rows_ = count;
  plan_tiles();
  // Blocks are as even as tiles allow, because all threads wait for the largest one.
  block_rows_ = round_up((count + most_blocks_ - 1) / most_blocks_, row_grain());
  copy_bytes_ = is_single_tile() ? tile_memory() : 0;
  const std::int64_t num_copies = copy_bytes_ > 0 ? exec_.num_threads() : 1;
  memory_ = exec_.allocate(DType::kFloat32, {num_copies * tile_memory() / 4});
  auto* next = reinterpret_cast<std::byte*>(memory_.data<float>());
  for (int i = 0; i < num_layouts_; ++i) {
    RowTiles& tiles = tiles_[i];
    tiles.data = next;
    next += tiles.num_bytes();
    if (copy_bytes_ == 0) round_tiles(tiles);
  }
}

// Rounds x on all threads. If tiles are few, threads divide parts of tiles among them.
void LinearProduct::round_tiles(const RowTiles& tiles) {
  const bool are_many = tiles.num_tiles >= 2 * exec_.num_threads();
  const std::int64_t part_cols = are_many || tiles.layout.takes_whole_rows ? cols_ : kTilePart;
  const std::int64_t num_parts = (cols_ + part_cols - 1) / part_cols;
  const std::int64_t grain =
      std::max(kForkRounding / (tiles.tile_rows * part_cols), std::int64_t{1});
  pool_of(exec_).parallel_for(
      tiles.num_tiles * num_parts, grain, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t tile = i / num_parts, first = i % num_parts * part_cols;
          round_part(tiles, tile, {first, std::min(first + part_cols, cols_)},
                     tiles.data + tile * tiles.tile_bytes);
        }
      });
}

void LinearProduct::start(const WeightSegment& segment, std::int64_t panel, int thread) const {
  if (copy_bytes_ == 0) return;
  fetch_first_bytes(segment.panel(panel));
  for (int i = 0; i < num_layouts_; ++i) {
    round_part(tiles_[i], 0, {0, cols_}, tiles_[i].data + thread * copy_bytes_);
  }
}

void LinearProduct::round_part(const RowTiles& tiles, std::int64_t tile, const TilePart& part,
                               std::byte* to) const {
  const std::int64_t row = tile * tiles.tile_rows;
  const std::int64_t left = num_rows_ - row;
  tiles.kernels->pack_tile(
      tiles.layout,
      {.x = x_.data<float>() + (first_row_ + row) * x_.stride(0),
       .x_stride = x_.stride(0),
       .num_rows = static_cast<int>(std::min<std::int64_t>(left, tiles.tile_rows)),
       .tile_rows = tiles.tile_rows,
       .cols = cols_},
      part, to);
}

void LinearProduct::fetch_next() const {
  if (most_blocks_ > 1) return;
  pool_of(exec_).fetch_behind_next(weight_.read_next(), fetch_time());
}

void LinearProduct::multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                             const PanelTarget& target) const {
  const RowTiles& tiles = *find_tiles(segment.layout.kind);
  multiply_panels(exec_, segment, begin, end, tiles,
                  {.tiles = tiles.data + target.thread * copy_bytes_ +
                            target.rows.first / tiles.tile_rows * tiles.tile_bytes,
                   .num_rows = target.rows.count,
                   .out = target.out,
                   .stride = target.stride,
                   .bias = target.bias});
}

}  // namespace pagoda::cpu
