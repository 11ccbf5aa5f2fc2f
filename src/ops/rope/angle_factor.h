// The factor of cosines and sines in rope_angles' native bodies.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/rope/rope.h"

namespace pagoda {

inline double factor_at(std::int32_t position, const RopeAnglesArgs& args) {
  if (args.growth == 0) return args.factor;
  return args.factor * (1 + args.growth * std::log1p(position / args.growth_positions));
}

}  // namespace pagoda
