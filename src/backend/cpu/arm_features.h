// The features of this machine beyond the vectors that every AArch64 has. Other architectures have
// none of them.
#pragma once

namespace pagoda {

struct ArmFeatures {
  bool has_dot_product = false;     // sdot, four products of bytes per lane
  bool has_matrix_product = false;  // smmla, two rows of eight bytes by two columns
};
ArmFeatures arm_features() noexcept;

}  // namespace pagoda
