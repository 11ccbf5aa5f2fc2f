// Modes of the harness: it checks ops against the reference, or measures times.
#pragma once

#include <string>

#include "tests/metal/cuda/cuda_exec.h"

namespace pagoda::metal_on_cuda {

enum class Thoroughness {
  kAll,         // every case, each token also in other batches
  kEachKernel,  // only enough cases to launch every kernel, for a sanitizer
};

// Compares the ops' small cases with the reference, and prints a line per op. Returns whether all
// are within their tolerance. Only ops whose name contains `filter` are checked.
bool check_ops(CudaExec& exec, Exec& reference, Thoroughness thoroughness,
               const std::string& filter);

// Launches on a listing device all kernels that check_ops() launches.
void list_ops(CudaExec& exec);

// Checks the results of a model's heaviest products and attention, and prints their times and the
// GPU's limits. Returns whether all are near the reference. If `is_listing`, nothing is computed,
// also not by the reference. Only figures whose name contains `filter` are taken.
bool take_figures(CudaExec& exec, Exec& reference, bool is_listing, const std::string& filter);

}  // namespace pagoda::metal_on_cuda
