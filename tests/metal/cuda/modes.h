// Modes of the harness: it checks ops against the reference, and takes figures.
#pragma once

#include <string>

#include "tests/metal/cuda/cuda_exec.h"

namespace pagoda::metal_on_cuda {

enum class Thoroughness {
  kAll,         // every case, each token also in other company
  kEachKernel,  // as few cases as launch every kernel, once: for a sanitizer
};

// Compares the ops' small cases with the reference, and prints a line an op. Returns whether all are
// near it. filter: of ops' names, or empty.
bool check_ops(CudaExec& exec, Exec& reference, Thoroughness thoroughness,
               const std::string& filter);

// Asks a listing device for all that check_ops() launches.
void list_ops(CudaExec& exec);

// Checks what a model's heaviest products and attention compute, and prints how long they take,
// beside the GPU's limits. Returns whether all are near the reference. is_listing: nothing is
// computed, so the reference isn't either. filter: of figures' names, or empty.
bool take_figures(CudaExec& exec, Exec& reference, bool is_listing, const std::string& filter);

}  // namespace pagoda::metal_on_cuda
