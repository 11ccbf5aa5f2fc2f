#include "ops/rms_norm_rope/rms_norm_rope.h"

namespace pagoda::reference {

Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& angles,
                     const RmsNormRopeArgs& args) {
  return reference::rope(exec, reference::rms_norm(exec, x, weight, args.norm), angles, args.rope);
}

}  // namespace pagoda::reference
