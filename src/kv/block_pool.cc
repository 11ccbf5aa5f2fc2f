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
  may_grow_.resize(num_blocks, false);
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
    block_id = place_new_run(wish.num_blocks);
  }
  if (wish.after >= 0) may_grow_[wish.after] = false;
  may_grow_[block_id] = true;
  num_holders_[block_id] = 1;
  set_free(block_id, false);
  --num_free_;
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
  may_grow_[block_id] = false;
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

// The first block from `from` on that is free, or taken; num_blocks() where there is none.
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

BlockPool::Run BlockPool::longest_free_run() const {
  Run longest;
  int num_left = num_free_;
  int begin = lowest_free_;
  for (int i = 0; i < kMaxRuns && num_left > longest.size(); ++i) {
    const Run run = {begin, find(/*free=*/false, begin)};
    if (run.size() > longest.size()) longest = run;
    num_left -= run.size();
    begin = find(/*free=*/true, run.end);
  }
  return longest;
}

int BlockPool::place_new_run(int num_blocks) const {
  const Run run = longest_free_run();
  if (run.begin == 0 || !may_grow_[run.begin - 1]) return run.begin;
  return run.begin + std::max(0, std::min(run.size() / 2, run.size() - num_blocks));
}

}  // namespace pagoda
