// A backend that this binary was built without.
#include "backend/backend.h"

namespace pagoda::cuda {

const bool kBuilt = false;

bool has_gpu() {
  return false;
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions&) {
  return unsupported("[device] cuda: not built into this binary");
}

}  // namespace pagoda::cuda
