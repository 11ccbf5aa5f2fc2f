#include "kv/block_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace pagoda {
namespace {

constexpr int kWordBits = 64;

}  // namespace

BlockPool::BlockPool(int num_blocks, BlockOrder order) : order_(order), num_free_(num_blocks) {
  PAGODA_CHECK(num_blocks >= 0, fmt::format("[block_pool] expected blocks, got {}", num_blocks));
  num_holders_.resize(num_blocks, 0);
  growth_.resize(num_blocks, 0);
  free_words_.resize((num_blocks + kWordBits - 1) / kWordBits, 0);
  for (int id = 0; id < num_blocks; ++id) set_free(id, true);
}

std::optional<int> BlockPool::allocate(const BlockWish& wish) {
  if (num_free_ == 0) return std::nullopt;
  lowest_free_ = find(/*free=*/true, lowest_free_);
  int block_id = wish.after + 1;
  if (order_ == BlockOrder::kLowest) {
    block_id = lowest_free_;
  } else if (wish.after < 0 || block_id == num_blocks() || num_holders_[block_id] > 0) {
    block_id = place_new_run(wish);
  }
  if (wish.after >= 0) growth_[wish.after] = 0;
  growth_[block_id] = std::max(0, wish.num_blocks - 1 + wish.num_growth);
  num_holders_[block_id] = 1;
  set_free(block_id, false);
  --num_free_;
  num_ever_held_ = std::max(num_ever_held_, block_id + 1);
  return block_id;
}

void BlockPool::retain(int block_id) {
  PAGODA_CHECK(num_holders(block_id) > 0,
               fmt::format("[block_pool] block {} is retained, but nobody holds it", block_id));
  ++num_holders_[block_id];
}

void BlockPool::release(int block_id) {
  PAGODA_CHECK(num_holders(block_id) > 0,
               fmt::format("[block_pool] block {} is released, but nobody holds it", block_id));
  growth_[block_id] = 0;
  if (--num_holders_[block_id] > 0) return;
  set_free(block_id, true);
  ++num_free_;
  lowest_free_ = std::min(lowest_free_, block_id);
}

int BlockPool::num_holders(int block_id) const {
  PAGODA_CHECK(
      0 <= block_id && block_id < num_blocks(),
      fmt::format("[block_pool] expected a block of [0, {}), got {}", num_blocks(), block_id));
  return num_holders_[block_id];
}

void BlockPool::set_free(int block_id, bool free) {
  const std::uint64_t bit = std::uint64_t{1} << (block_id % kWordBits);
  std::uint64_t& word = free_words_[block_id / kWordBits];
  word = free ? word | bit : word & ~bit;
}

// Returns the first free block from `from` on, or the first taken one if not `free`; num_blocks()
// if there is none.
int BlockPool::find(bool free, int from) const {
  const std::uint64_t flip = free ? 0 : ~std::uint64_t{0};
  std::uint64_t mask = ~std::uint64_t{0} << (from % kWordBits);
  for (std::size_t i = from / kWordBits; i < free_words_.size(); ++i) {
    const std::uint64_t word = (free_words_[i] ^ flip) & mask;
    if (word != 0)
      return std::min(static_cast<int>(i) * kWordBits + std::countr_zero(word), num_blocks());
    mask = ~std::uint64_t{0};
  }
  return num_blocks();
}

// Returns how many blocks are kept for the growth of the sequence that ends just before the run.
int BlockPool::growth_before(const Run& run) const {
  return run.begin == 0 ? 0 : growth_[run.begin - 1];
}

int BlockPool::place_new_run(const BlockWish& wish) const {
  Run longest;
  int num_left = num_free_;
  int begin = lowest_free_;
  for (int i = 0; i < kMaxRuns && num_left > 0; ++i) {
    const Run run = {begin, find(/*free=*/false, begin)};
    const int growth = growth_before(run);
    if (run.size() - growth >= wish.num_blocks + wish.num_growth) return run.begin + growth;
    if (run.size() > longest.size()) longest = run;
    num_left -= run.size();
    begin = find(/*free=*/true, run.end);
  }
  if (growth_before(longest) == 0) return longest.begin;
  return longest.begin +
         std::max(0, std::min(longest.size() / 2, longest.size() - wish.num_blocks));
}

}  // namespace pagoda
