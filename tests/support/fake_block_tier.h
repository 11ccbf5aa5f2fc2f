// FakeBlockTier: a tier in memory, for tests of bookkeeping. The test sets how slow, forgetful and
// faulty it is.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/check.h"
#include "kv/block_tier.h"

namespace pagoda::testing {

// Returns the memory of a block, which a tier copies from and to.
using BlockCells = std::function<std::span<std::uint64_t>(int block_id)>;

class FakeBlockTier final : public BlockTier {
 public:
  explicit FakeBlockTier(BlockCells cells) : cells_(std::move(cells)) {}

  // Returns, for each block that is asked for, whether it has arrived.
  std::function<Arrival()> arrives = [] { return Arrival::kHere; };
  // Returns, for each block that is stored, whether the tier accepts it.
  std::function<bool()> takes = [] { return true; };
  int loads_per_step = 2;
  int num_loaded = 0;
  int num_passed = 0;

  std::size_t num_blocks() const { return blocks_.size(); }
  std::size_t num_fetches() const { return fetches_.size(); }
  // Forgets the block with the lowest digest.
  void forget_one() {
    if (!blocks_.empty()) blocks_.erase(blocks_.begin());
  }

  void store(int block_id, const Sha256Digest& digest, std::span<const int> tokens) override {
    if (!takes()) return;
    const std::span<const std::uint64_t> cells = cells_(block_id);
    blocks_[digest] = {.tokens = {tokens.begin(), tokens.end()},
                       .cells = {cells.begin(), cells.end()}};
  }
  bool wait_for_room() override { return true; }
  int num_held(std::span<const Sha256Digest> digests) const override {
    std::size_t num_held = 0;
    while (num_held < digests.size() && blocks_.contains(digests[num_held])) ++num_held;
    return static_cast<int>(num_held);
  }
  FetchId begin_fetch(std::span<const Sha256Digest> digests, std::span<const int> tokens) override {
    Fetch& fetch = fetches_[next_id_];
    const std::size_t block_size = tokens.size() / digests.size();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const Block& block = blocks_.at(digests[i]);
      const auto asked = tokens.subspan(i * block_size, block_size);
      PAGODA_CHECK(std::vector<int>(asked.begin(), asked.end()) == block.tokens,
                   "[fake tier] a block is fetched with other tokens than its own");
      fetch.blocks.push_back(block);
    }
    return next_id_++;
  }
  Arrival arrival(FetchId id) override {
    Fetch& fetch = fetches_.at(id);
    if (fetch.num_taken == fetch.blocks.size()) return Arrival::kNever;
    if (!fetch.is_here) {
      const Arrival arrival = arrives();
      if (arrival != Arrival::kHere) return arrival;
      fetch.is_here = true;
    }
    return Arrival::kHere;
  }
  void load(FetchId id, int block_id) override {
    Fetch& fetch = fetches_.at(id);
    PAGODA_CHECK(fetch.is_here, "[fake tier] a block is loaded that has not come");
    const std::vector<std::uint64_t>& cells = fetch.blocks[fetch.num_taken].cells;
    std::copy(cells.begin(), cells.end(), cells_(block_id).begin());
    ++fetch.num_taken;
    fetch.is_here = false;
    ++num_loaded;
  }
  void pass(FetchId id) override {
    Fetch& fetch = fetches_.at(id);
    if (fetch.num_taken < fetch.blocks.size()) ++fetch.num_taken;
    fetch.is_here = false;
    ++num_passed;
  }
  void end_fetch(FetchId id) override {
    PAGODA_CHECK(fetches_.erase(id) == 1, "[fake tier] a fetch ends twice");
  }
  int num_loads_per_step() const override { return loads_per_step; }
  BlockTierCounters counters() const override { return {}; }

 private:
  struct Block {
    std::vector<int> tokens;
    std::vector<std::uint64_t> cells;
  };
  struct Fetch {
    std::vector<Block> blocks;
    std::size_t num_taken = 0;
    bool is_here = false;  // the next block
  };

  BlockCells cells_;
  std::map<Sha256Digest, Block> blocks_;
  std::map<FetchId, Fetch> fetches_;
  FetchId next_id_ = 0;
};

}  // namespace pagoda::testing
