// The gated activation of one gate and up, which glu and gated_linear share.
#ifndef PAGODA_GATED_METAL_H
#define PAGODA_GATED_METAL_H

// Returns activation(gate) * up, with the activation as x / (1 + e^-y) (glu_row-inl.h). If exp()
// overflows, the activation is zero. activation: the number of an Activation. alpha, limit: of
// Activation::kSwigluOai, which is 2
inline float gated(float gate, float up, uint activation, float alpha, float limit) {
  float y = gate;
  if (activation == 1) y = gate * (1.59576912f + gate * gate * 0.0713548163f);
  if (activation == 2) {
    gate = gate > limit ? limit : gate;
    up = up > limit ? limit : up;
    up = (up < -limit ? -limit : up) + 1.0f;
    y = gate * alpha;
  }
  return gate / (1.0f + precise::exp(-y)) * up;
}

#endif  // PAGODA_GATED_METAL_H
