// route: the experts of a mixture that each token uses, and their weights (Shazeer et al.,
// "Outrageously Large Neural Networks", 2017, arXiv:1701.06538).
#pragma once

#include <functional>

#include "ops/dispatch.h"
#include "ops/route/route_rule.h"
#include "tensor/tensor.h"

namespace pagoda {

struct RouteArgs {
  RouteRule rule;
  // Added to scores for the choice of experts alone (Wang et al., "Auxiliary-Loss-Free Load
  // Balancing", 2024, arXiv:2408.15664).
  Tensor choice_bias;    // [experts] float32, or undefined
  Tensor expert_scales;  // multiply the weights: [experts] float32, or undefined
};

// A token's experts, the best first, and their weights.
struct Routes {
  Tensor experts;  // [tokens, num_chosen] int32
  Tensor weights;  // [tokens, num_chosen] float32
};

// Chooses the experts of each token.
//   logits  [tokens, experts] float32, contiguous; at most kMostExperts
// Experts are compared by their scores if there are groups or a choice_bias, else by their logits.
// The lower number wins a tie, and NaN is worse than any number. So the experts of a token are
// distinct and exist, whatever the logits are.
Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args);

// A function in place of all backends' bodies.
using RouteBody = std::function<Routes(Exec& exec, const Tensor& logits, const RouteArgs& args)>;

// Makes route() call `body` in its lifetime. Process-wide, and only for tests: one records the
// choices of a backend, another replays them on a second one.
class ReplacedRoute {
 public:
  explicit ReplacedRoute(RouteBody body);
  ReplacedRoute(const ReplacedRoute&) = delete;
  ReplacedRoute& operator=(const ReplacedRoute&) = delete;
  ~ReplacedRoute();
};

PAGODA_DECLARE_BODIES(Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args))

}  // namespace pagoda
