// The gated activation of one gate and up, which glu and gated_linear share.
#ifndef PAGODA_GATED_METAL_H
#define PAGODA_GATED_METAL_H

// Returns activation(gate) * up, with the activation as x / (1 + e^-y) (glu_row-inl.h). If exp()
// overflows, the activation is zero.
inline float gated(float gate, float up, bool is_gelu) {
  const float y = is_gelu ? gate * (1.59576912f + gate * gate * 0.0713548163f) : gate;
  return gate / (1.0f + precise::exp(-y)) * up;
}

#endif  // PAGODA_GATED_METAL_H
