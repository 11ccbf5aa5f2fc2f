// What this machine has beyond the vectors of every AArch64. On other architectures: nothing.
#pragma once

namespace pagoda {

struct ArmFeatures {
  bool has_dot_product = false;  // sdot, four products of bytes a lane
};
ArmFeatures arm_features() noexcept;

}  // namespace pagoda
