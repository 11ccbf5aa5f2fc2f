// Parameters of gate_heads.metal.
#ifndef PAGODA_GATE_HEADS_METAL_H
#define PAGODA_GATE_HEADS_METAL_H

struct GateHeadsParameters {
  int dim;    // of a row
  int width;  // elements of a gate
};

#endif  // PAGODA_GATE_HEADS_METAL_H
