// Shapes of linear, for its case list and for its own test.
#pragma once

#include <vector>

#include "ops/op_case.h"

namespace pagoda {

struct LinearPart {
  CaseFormat format;
  int rows;
};

struct LinearShape {
  int tokens;
  int cols;
  std::vector<LinearPart> parts;
  bool has_bias = false;
  int x_padding = 0;  // elements between the rows of x
  float magnitude = 1;
  bool is_large = false;
};

std::vector<HostTensor> linear_parts(const LinearShape& shape);
std::vector<float> linear_inputs(const LinearShape& shape);  // [tokens, cols + x_padding]
std::vector<float> linear_bias(const LinearShape& shape);    // [rows]
OpCase make_linear_case(const LinearShape& shape);

}  // namespace pagoda
