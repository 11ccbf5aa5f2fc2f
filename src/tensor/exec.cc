#include "tensor/exec.h"

namespace pagoda {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::kReference:
      return "reference";
    case Backend::kCpu:
      return "cpu";
    case Backend::kMlx:
      return "mlx";
    case Backend::kCuda:
      return "cuda";
  }
  return "unknown";
}

}  // namespace pagoda
