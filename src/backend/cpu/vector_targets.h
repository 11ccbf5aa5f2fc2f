// The instruction sets that this machine has of those that Highway compiles ops for. Ops pick the
// best that the Exec's CpuIsa allows; a test picks each.
//
// Highway keeps its choice for the whole process: all Execs of a process agree, because all read
// the same PAGODA_CPU_ISA. Where a test asks for one ISA after another by ExecOptions, the Exec
// made last decides.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_isa.h"

namespace pagoda::cpu {

struct VectorTarget {
  std::int64_t id;  // Highway's bit
  std::string_view name;
};
std::vector<VectorTarget> vector_targets();  // best first

// Execs made while it lives use this target only, or where their ISA does not allow it the
// portable one; process-wide, so for tests with one thread.
class OnlyVectorTarget {
 public:
  explicit OnlyVectorTarget(const VectorTarget& target);
  OnlyVectorTarget(const OnlyVectorTarget&) = delete;
  OnlyVectorTarget& operator=(const OnlyVectorTarget&) = delete;
  ~OnlyVectorTarget();
};

// Fills Highway's table of the functions to call with the best that `isa` allows. Until then the
// table points to Highway's own chooser.
void choose_vector_target(CpuIsa isa);

// Returns the name of the target that runs, as its own code tells it.
std::string_view running_vector_target();

}  // namespace pagoda::cpu
