#include "sampling/seen_tokens.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace pagoda {
namespace {

// Returns the Fibonacci hash: the high bits of a product with 2^32 over the golden ratio.
std::size_t slot_of(int token_id, std::size_t num_slots) {
  return (static_cast<std::uint32_t>(token_id) * 0x9E3779B9u) >> (32 - std::countr_zero(num_slots));
}

}  // namespace

SeenTokens::SeenTokens(int max_tokens) {
  const auto capacity = static_cast<std::size_t>(std::max(max_tokens, 1));
  entries_.reserve(capacity);
  table_.assign(std::bit_ceil(2 * capacity), -1);  // at most half full, so that probes stay short
}

std::size_t SeenTokens::find_slot(int token_id) const {
  std::size_t slot = slot_of(token_id, table_.size());
  while (table_[slot] >= 0 && entries_[table_[slot]].token_id != token_id)
    slot = (slot + 1) % table_.size();
  return slot;
}

int SeenTokens::add(int token_id, bool is_output) {
  const std::size_t slot = find_slot(token_id);
  if (table_[slot] < 0) {
    PAGODA_CHECK(entries_.size() < entries_.capacity(), "[seen_tokens] more than its limit");
    table_[slot] = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({.token_id = token_id});
  }
  entries_[table_[slot]].output_count += is_output ? 1 : 0;
  return table_[slot];
}

void SeenTokens::take_back(int token_id) {
  const std::int32_t index = table_[find_slot(token_id)];
  PAGODA_CHECK(index >= 0 && entries_[index].output_count > 0,
               "[seen_tokens] a token is taken back that was not added");
  --entries_[index].output_count;
}

void SeenTokens::clear() {
  entries_.clear();
  std::fill(table_.begin(), table_.end(), -1);
}

}  // namespace pagoda
