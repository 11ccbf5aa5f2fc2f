#include "tensor/hole_list.h"

#include <algorithm>
#include <iterator>

namespace pagoda {

HoleList::HoleList(std::size_t size, std::size_t expected_holes) {
  holes_.reserve(expected_holes);
  holes_.push_back({0, size});
}

std::optional<std::size_t> HoleList::take(std::size_t size) {
  const auto hole =
      std::find_if(holes_.begin(), holes_.end(), [size](const Hole& h) { return h.size >= size; });
  if (hole == holes_.end()) return std::nullopt;
  const std::size_t begin = hole->begin;
  hole->begin += size;
  hole->size -= size;
  if (hole->size == 0) holes_.erase(hole);
  return begin;
}

void HoleList::put_back(std::size_t begin, std::size_t size) {
  const auto next = std::upper_bound(holes_.begin(), holes_.end(), begin,
                                     [](std::size_t at, const Hole& h) { return at < h.begin; });
  const bool joins_next = next != holes_.end() && begin + size == next->begin;
  if (next != holes_.begin()) {
    const auto previous = std::prev(next);
    if (previous->begin + previous->size == begin) {
      previous->size += size + (joins_next ? next->size : 0);
      if (joins_next) holes_.erase(next);
      return;
    }
  }
  if (joins_next) {
    next->begin = begin;
    next->size += size;
  } else {
    holes_.insert(next, {begin, size});
  }
}

}  // namespace pagoda
