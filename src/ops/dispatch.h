// The table of an op's bodies, one for each kind of backend. The function of every op ends with a call of
// the body for its Exec. Before the call it makes an OpTimer, which records what the call costs.
#pragma once

#include "tensor/exec.h"
#include "tensor/op_profile.h"  // IWYU pragma: export

namespace pagoda {

template <typename Function>
struct Bodies {
  Function* reference;
  Function* cpu;
  Function* gpu;

  Function* of(const Exec& exec) const { return of(exec.backend()); }
  Function* of(Backend backend) const {
    switch (backend) {
      case Backend::kReference:
        return reference;
      case Backend::kCpu:
        return cpu;
      case Backend::kMlx:
      case Backend::kCuda:
        return gpu;
    }
    return reference;
  }
};

}  // namespace pagoda

// Declares an op's bodies: PAGODA_DECLARE_BODIES(Tensor argmax(Exec& exec, const Tensor& logits));
#define PAGODA_DECLARE_BODIES(...) \
  namespace reference {            \
  __VA_ARGS__;                     \
  }                                \
  namespace cpu {                  \
  __VA_ARGS__;                     \
  }                                \
  namespace gpu {                  \
  __VA_ARGS__;                     \
  }
