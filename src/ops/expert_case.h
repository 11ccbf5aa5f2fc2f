// Shapes and inputs that the cases of a mixture's ops share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/weight.h"
#include "ops/glu/activation.h"
#include "ops/op_case.h"

namespace pagoda {

// Returns distinct experts for each token, [tokens, num_chosen], drawn by `seed`. The first of every
// fourth token is expert 0.
std::vector<std::int32_t> random_experts(std::uint32_t seed, int tokens, int num_chosen,
                                         int num_experts);

// The rows of a case of expert_gated_linear or expert_linear.
struct ExpertShape {
  int tokens = 1;
  int num_chosen = 1;
  int num_experts = 1;
  int cols = 32;
  int dim = 32;  // of a row's result
  CaseFormat format = WeightFormat::kQ4_0;
  CaseFormat up = WeightFormat::kQ4_0;  // of expert_gated_linear alone
  bool has_bias = false;
  // Whether the last expert's numbers are NaN, and no token chooses it. Only for plain formats.
  bool last_is_nan = false;
  bool is_large = false;
};

std::string description_of(const ExpertShape& shape);
// Returns experts for the listed tokens of the case.
std::vector<std::int32_t> experts_of(const ExpertShape& shape, std::span<const int> tokens);
// Returns the matrix of an expert's part: 0, or 1 for up.
HostTensor matrix_of_expert(const ExpertShape& shape, int expert, int part);
// Returns how many bytes of weights the case's tokens read, of `num_parts` matrices for an expert.
double bytes_of_experts(const ExpertShape& shape, int num_parts);
// Returns the shapes that both products test.
std::vector<ExpertShape> expert_shapes();

// Returns the cases of the two ops for a shape.
OpCase make_expert_gated_linear_case(const ExpertShape& shape,
                                     Activation activation = Activation::kSilu);
// The expert that all tokens share.
enum class SharedExpert : std::uint8_t { kNone, kPlain, kGated };
OpCase make_expert_linear_case(const ExpertShape& shape, SharedExpert shared = SharedExpert::kNone);

}  // namespace pagoda
