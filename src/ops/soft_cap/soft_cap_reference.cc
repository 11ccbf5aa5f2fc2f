#include <cmath>

#include "ops/soft_cap/soft_cap.h"

namespace pagoda::reference {

Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    out.data<float>()[i] =
        static_cast<float>(args.cap * std::tanh(double{x.data<float>()[i]} / args.cap));
  }
  return out;
}

}  // namespace pagoda::reference
