#include "ops/expert_linear/expert_product.h"

#include <algorithm>

namespace pagoda::cpu {
namespace {

struct Block {
  std::int64_t expert;
  std::int64_t first_row;
  std::int64_t num_rows;
};

Block block_of(const Routing& routing, std::int64_t index) {
  const auto* block = routing.blocks.data<std::int32_t>() + 3 * index;
  return {block[0], block[1], block[2]};
}

std::int64_t num_used_blocks(const Routing& routing) {
  std::int64_t count = 0;
  while (count < routing.blocks.extent(0) && block_of(routing, count).num_rows > 0) ++count;
  return count;
}

}  // namespace

ExpertProduct::ExpertProduct(Exec& exec, const ExpertWeight& weight, const Tensor& x,
                             ExpertRows rows, const Routing& routing)
    : exec_(exec),
      weight_(packed(weight.all)),
      x_(x),
      rows_(rows),
      routing_(routing),
      num_parts_(weight_.is_gated() ? 2 : 1),
      num_blocks_(num_used_blocks(routing)),
      num_pairs_(weight_.segments().front().num_pairs()) {
  count_expert_bytes(exec, num_hit_experts(routing) * weight_.num_bytes() / weight.num_experts);
  const auto& first = kernels_of(exec, segment_of(0, 0).layout.kind);
  const auto& last = kernels_of(exec, segment_of(0, num_parts_ - 1).layout.kind);
  parts_share_tiles_ = first.kernels == last.kernels && first.layout == last.layout;
  for (std::int64_t i = 0; i < num_blocks_; ++i) {
    const ExpertPiece piece = {.num_rows = block_of(routing, i).num_rows};
    for (int part = 0; part < num_parts_; ++part) {
      part_bytes_ = std::max(part_bytes_, tiles_of(part, piece).num_bytes());
    }
  }
  const std::int64_t threads = exec.num_threads();
  memory_ = exec.allocate(DType::kFloat32, {threads, num_parts_, part_bytes_ / 4});
  taken_ = exec.allocate(DType::kInt8, {threads, sizeof(Taken)});
  std::fill_n(reinterpret_cast<Taken*>(taken_.data<std::int8_t>()), threads, Taken{});
  const std::int64_t rows_of_block =
      routing.tokens.extent(0) / std::max(num_blocks_, std::int64_t{1});
  const std::int64_t work = rows_of_block * x.extent(1) * 2 * kPanelColumns * num_parts_;
  grain_ = std::max(kForkWork / work, std::int64_t{1});
}

RowTiles ExpertProduct::tiles_of(int part, const ExpertPiece& piece) const {
  const PanelKind kind = segment_of(piece.expert, part).layout.kind;
  RowTiles tiles = plan_tiles(kernels_of(exec_, kind), piece.num_rows, x_.extent(1));
  if (!memory_.defined()) return tiles;
  auto* memory = reinterpret_cast<std::byte*>(memory_.data<float>());
  const int own = parts_share_tiles_ ? 0 : part;
  tiles.data = memory + (piece.thread * num_parts_ + own) * part_bytes_;
  return tiles;
}

ExpertPiece ExpertProduct::piece_at(std::int64_t begin, std::int64_t end, int thread) const {
  const std::int64_t first_unit = begin / num_pairs_ * num_pairs_;  // of the block
  const Block block = block_of(routing_, begin / num_pairs_);
  ExpertPiece piece = {.thread = thread,
                       .expert = static_cast<int>(block.expert),
                       .first_row = block.first_row,
                       .num_rows = block.num_rows,
                       .first_pair = begin - first_unit,
                       .end_pair = std::min(end - first_unit, num_pairs_)};
  for (int part = 0; part < num_parts_; ++part) piece.tiles[part] = tiles_of(part, piece);
  return piece;
}

// Returns whether a thread has rounded the piece's rows: for the block before, or as the only row
// of another expert.
bool ExpertProduct::have_same_row(const Taken& taken, const ExpertPiece& piece) const {
  if (taken.num_rows != piece.num_rows) return false;
  if (taken.first_row == piece.first_row) return true;
  if (rows_ == ExpertRows::kSorted || piece.num_rows != 1) return false;
  const auto* tokens = routing_.tokens.data<std::int32_t>();
  return tokens[taken.first_row] == tokens[piece.first_row];
}

// Rounds the piece's rows into the thread's tiles.
void ExpertProduct::take(const ExpertPiece& piece) const {
  Taken& taken = reinterpret_cast<Taken*>(taken_.data<std::int8_t>())[piece.thread];
  if (have_same_row(taken, piece)) return;
  taken = {.first_row = piece.first_row, .num_rows = piece.num_rows};
  fetch_first_bytes(segment_of(piece.expert, 0).panel(2 * piece.first_pair));
  for (int part = 0; part < (parts_share_tiles_ ? 1 : num_parts_); ++part) {
    const RowTiles& tiles = piece.tiles[part];
    for (std::int64_t tile = 0; tile < tiles.num_tiles; ++tile) {
      const std::int64_t row = tile * tiles.tile_rows;
      TileSource source = {.x = x_.data<float>(),
                           .x_stride = x_.stride(0),
                           .num_rows = static_cast<int>(
                               std::min<std::int64_t>(piece.num_rows - row, tiles.tile_rows)),
                           .tile_rows = tiles.tile_rows,
                           .cols = x_.extent(1)};
      if (rows_ == ExpertRows::kOfTokens) {
        source.rows = routing_.tokens.data<std::int32_t>() + piece.first_row + row;
      } else {
        source.x += (piece.first_row + row) * source.x_stride;
      }
      tiles.kernels->pack_tile(tiles.layout, source, {0, source.cols},
                               tiles.data + tile * tiles.tile_bytes);
    }
  }
}

void ExpertProduct::multiply(const ExpertPiece& piece, int part, std::int64_t begin,
                             std::int64_t end, float* out, std::int64_t stride,
                             const float* bias) const {
  const RowTiles& tiles = piece.tiles[part];
  multiply_panels(exec_, segment_of(piece.expert, part), begin, end, tiles,
                  {.tiles = tiles.data,
                   .num_rows = piece.num_rows,
                   .out = out,
                   .stride = stride,
                   .bias = bias});
}

}  // namespace pagoda::cpu
