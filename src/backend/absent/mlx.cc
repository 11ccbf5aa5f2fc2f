// A backend that this binary was built without.
#include "backend/backend.h"

namespace pagoda::mlx {

const bool kBuilt = false;

bool has_gpu() {
  return false;
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions&) {
  return unsupported("[device] mlx: not built into this binary");
}

}  // namespace pagoda::mlx
