#include "backend/cpu/cpu_exec.h"

#include "backend/cpu/vector_targets.h"
#include "core/machine.h"

namespace pagoda::cpu {
namespace {

constexpr int kMaxThreads = 256;  // one model does not need more

}  // namespace

Result<std::unique_ptr<Exec>> CpuExec::create(const ExecOptions& options) {
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return invalid_argument("[device] cpu: expected 1 to {} threads, got {}", kMaxThreads,
                            options.num_threads);
  }
  ExecOptions chosen = options;
  if (options.cpu_isa) {
    PAGODA_RETURN_IF_ERROR(check_cpu_isa(*options.cpu_isa));
  } else {
    PAGODA_ASSIGN_OR_RETURN(chosen.cpu_isa, choose_cpu_isa());
  }
  if (options.int8_activations && !includes_avx512(*chosen.cpu_isa)) {
    return unsupported("[device] int8 activations: expected avx512, cpu computes with {}",
                       cpu_isa_name(*chosen.cpu_isa));
  }
  choose_vector_target(*chosen.cpu_isa);
  if (options.num_threads == 0) chosen.num_threads = default_num_threads();
  PAGODA_ASSIGN_OR_RETURN(Arenas arenas, make_arenas(/*huge_pages=*/true));
  return std::unique_ptr<Exec>(new CpuExec(std::move(arenas), chosen));
}

std::string CpuExec::arithmetic() const {
  return fmt::format("{}, {}{}", backend_name(backend()), cpu_isa_name(isa_),
                     int8_activations_ ? ", int8 activations" : "");
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions& options) {
  return CpuExec::create(options);
}

}  // namespace pagoda::cpu
