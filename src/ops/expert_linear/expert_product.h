// ExpertProduct multiplies rows of x with the panels of their experts, for the ops
// expert_gated_linear and expert_linear.
//
// A unit of work is a block of rows of one expert (Routing) and a pair of the expert's panels. Units
// are in the order of memory, so a thread reads one ascending stream of the chosen experts' weights,
// and a step forks once. Each thread rounds the rows of the block that it multiplies into tiles of
// its own: blocks are many, so that few are rounded twice.
#pragma once

#include <array>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/group_by_expert/group_by_expert.h"
#include "ops/linear/row_tiles.h"

namespace pagoda::cpu {

// Consecutive pairs of panels of one expert, and the rows to multiply with them.
struct ExpertPiece {
  int thread = 0;
  int expert = 0;
  std::int64_t first_row = 0;  // of the rows that Routing sorts
  std::int64_t num_rows = 0;
  std::int64_t first_pair = 0;
  std::int64_t end_pair = 0;
  std::array<RowTiles, 2> tiles;  // the rows, as the kernels of each part read them
};

// The rows of x.
enum class ExpertRows : std::uint8_t {
  kOfTokens,  // one for each token: row i reads that of routing.tokens[i]
  kSorted,    // one for each row that Routing sorts
};

class ExpertProduct {
 public:
  // REQUIRES: all arguments outlive the product. If the weight is gated, a pair of panels is one of
  // the gate and one of up.
  ExpertProduct(Exec& exec, const ExpertWeight& weight, const Tensor& x, ExpertRows rows,
                const Routing& routing);

  // Calls body(piece) for all pieces, in parallel, on the threads of the Exec. Rows of each piece
  // have been rounded when it is called.
  template <typename Body>
  void for_each_piece(const Body& body) const {
    pool_of(exec_).parallel_for(num_blocks_ * num_pairs_, grain_,
                                [&](std::int64_t begin, std::int64_t end, int thread) {
                                  while (begin < end) {
                                    const ExpertPiece piece = piece_at(begin, end, thread);
                                    take(piece);
                                    body(piece);
                                    begin += piece.end_pair - piece.first_pair;
                                  }
                                });
  }

  // Multiplies a piece's rows with panels [begin, end) of a part of its expert: part 0 is the gate,
  // or the only one; part 1 is up. Called by the piece's body. out[0] has the piece's first row, and
  // the first panel's first column. bias: of that column on, or null.
  void multiply(const ExpertPiece& piece, int part, std::int64_t begin, std::int64_t end,
                float* out, std::int64_t stride, const float* bias) const;

 private:
  // The rows that a thread has rounded.
  struct alignas(64) Taken {
    std::int64_t first_row;
    std::int64_t num_rows;  // 0: none
  };

  RowTiles tiles_of(int part, const ExpertPiece& piece) const;
  const WeightSegment& segment_of(int expert, int part) const {
    return weight_.segments()[expert * num_parts_ + part];
  }
  ExpertPiece piece_at(std::int64_t begin, std::int64_t end, int thread) const;
  void take(const ExpertPiece& piece) const;
  bool have_same_row(const Taken& taken, const ExpertPiece& piece) const;

  Exec& exec_;
  const CpuWeight& weight_;
  const Tensor& x_;
  ExpertRows rows_;
  const Routing& routing_;
  int num_parts_;
  bool parts_share_tiles_ = true;  // whether the kernels of both parts read the same layout
  std::int64_t num_blocks_ = 0;
  std::int64_t num_pairs_;  // of an expert's part
  std::int64_t grain_ = 1;
  std::int64_t part_bytes_ = 0;  // of the tiles of a part
  Tensor memory_;                // [threads, parts] tiles
  Tensor taken_;                 // [threads] Taken
};

}  // namespace pagoda::cpu
