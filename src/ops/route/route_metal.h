// Parameters of route.metal; route_rule.h says what they mean.
#ifndef PAGODA_ROUTE_METAL_H
#define PAGODA_ROUTE_METAL_H

struct RouteParameters {
  int num_tokens;
  int num_experts;
  int num_chosen;
  int num_groups;
  int num_chosen_groups;
  int is_sigmoid;            // Gating::kSigmoid
  int is_softmax_of_chosen;  // Gating::kSoftmaxOfChosen; neither: kSoftmax
  int has_bias;
  int has_scales;
  int is_normalised;
  float least_sum;
  float sum_offset;
  float factor;
  float logit_cap;
};

#endif  // PAGODA_ROUTE_METAL_H
