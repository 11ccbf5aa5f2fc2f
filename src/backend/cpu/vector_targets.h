// The instruction sets that this machine has of those that Highway knows. Ops pick the best; a test
// picks each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace pagoda::cpu {

struct VectorTarget {
  std::int64_t id;  // Highway's bit
  std::string_view name;
};
std::vector<VectorTarget> vector_targets();  // best first

// Execs made while it lives use this target only; process-wide, so for tests with one thread.
class OnlyVectorTarget {
 public:
  explicit OnlyVectorTarget(const VectorTarget& target);
  OnlyVectorTarget(const OnlyVectorTarget&) = delete;
  OnlyVectorTarget& operator=(const OnlyVectorTarget&) = delete;
  ~OnlyVectorTarget();
};

// Fills Highway's table of the functions to call, which points to a chooser until somebody has
// chosen.
void choose_vector_target();

}  // namespace pagoda::cpu
