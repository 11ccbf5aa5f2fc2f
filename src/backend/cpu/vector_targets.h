// Highway's targets: the instruction sets that it compiles ops for. Ops run the best target that
// the machine has and the Exec's CpuIsa allows; tests run each target.
//
// Highway has one choice for the whole process. All Execs of a process agree, because they read the
// same PAGODA_CPU_ISA. If a test makes Execs of several ISAs by ExecOptions, the last one decides.
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

// Makes Execs that are created in its lifetime use this target only, or the portable one if their
// ISA does not allow this target. Process-wide, so only for tests with one thread.
class OnlyVectorTarget {
 public:
  explicit OnlyVectorTarget(const VectorTarget& target);
  OnlyVectorTarget(const OnlyVectorTarget&) = delete;
  OnlyVectorTarget& operator=(const OnlyVectorTarget&) = delete;
  ~OnlyVectorTarget();
};

// Makes Highway call the best functions that `isa` allows. Without this call it chooses by itself.
void choose_vector_target(CpuIsa isa);

// Returns the name of the target that runs; the target's own code returns it.
std::string_view running_vector_target();

}  // namespace pagoda::cpu
