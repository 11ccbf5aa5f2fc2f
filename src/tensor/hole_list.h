// HoleList: the free parts of a range of memory. The lowest hole that is large enough is taken, so
// that the same sequence of takes and returns gives the same places.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace pagoda {

// Not thread-safe.
class HoleList {
 public:
  // Makes a list with one hole, [0, size). Room for `expected_holes` is allocated at once.
  HoleList(std::size_t size, std::size_t expected_holes);

  // Takes `size` bytes and returns where they begin; nothing if no hole is that large.
  std::optional<std::size_t> take(std::size_t size);
  // Returns what take() gave; it is joined with holes that touch it.
  void put_back(std::size_t begin, std::size_t size);

 private:
  struct Hole {
    std::size_t begin;
    std::size_t size;
  };
  std::vector<Hole> holes_;  // by address; no two touch
};

}  // namespace pagoda
