#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "ops/route/route.h"

namespace pagoda::reference {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// One token's scores and choices.
class Router {
 public:
  Router(std::span<const float> logits, const RouteArgs& args)
      : args_(args), rule_(args.rule), logits_(logits.begin(), logits.end()) {
    if (rule_.logit_cap != 0) {
      for (double& logit : logits_) logit = rule_.logit_cap * std::tanh(logit / rule_.logit_cap);
    }
    scores_ = logits_;
    if (rule_.gating == Gating::kSigmoid) {
      for (double& score : scores_) score = 1 / (1 + std::exp(-score));
    } else if (rule_.gating == Gating::kSoftmax) {
      softmax(scores_);
    }
  }

  // Returns the chosen experts, the best first.
  std::vector<int> choose() const {
    const bool has_bias = args_.choice_bias.defined();
    std::vector<double> values = has_bias || rule_.num_groups > 1 ? scores_ : logits_;
    for (std::size_t e = 0; e < values.size(); ++e) {
      if (has_bias) values[e] += args_.choice_bias.data<float>()[e];
      if (std::isnan(values[e])) values[e] = kWorst;
    }
    std::vector<int> experts = experts_of_best_groups(values);
    experts = best_of(values, std::move(experts), rule_.num_chosen);
    return experts;
  }

  std::vector<double> weights_of(std::span<const int> experts) const {
    std::vector<double> weights;
    for (const int expert : experts) weights.push_back(scores_[expert]);
    if (rule_.gating == Gating::kSoftmaxOfChosen) softmax(weights);
    if (rule_.is_normalised) {
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      const double divisor = std::max<double>(sum, rule_.least_sum) + rule_.sum_offset;
      for (double& weight : weights) weight /= divisor;
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] *= rule_.factor;
      if (args_.expert_scales.defined()) {
        weights[i] *= args_.expert_scales.data<float>()[experts[i]];
      }
    }
    return weights;
  }

 private:
  static void softmax(std::vector<double>& values) {
    const double largest = *std::max_element(values.begin(), values.end());
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value - largest);
    for (double& value : values) value /= sum;
  }

  // Returns the best `count` of `candidates`, the best first.
  static std::vector<int> best_of(const std::vector<double>& values, std::vector<int> candidates,
                                  int count) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](int a, int b) { return values[a] > values[b]; });
    candidates.resize(count);
    return candidates;
  }

  std::vector<int> experts_of_best_groups(const std::vector<double>& values) const {
    const int size = static_cast<int>(values.size()) / rule_.num_groups;
    std::vector<double> sums;
    for (int group = 0; group < rule_.num_groups; ++group) {
      std::vector<double> best(values.begin() + group * size, values.begin() + (group + 1) * size);
      std::sort(best.begin(), best.end(), std::greater<>());
      sums.push_back(best[0] + (size > 1 ? best[1] : 0));
    }
    std::vector<int> groups(rule_.num_groups);
    std::iota(groups.begin(), groups.end(), 0);
    groups = best_of(sums, std::move(groups), rule_.num_chosen_groups);
    std::sort(groups.begin(), groups.end());
    std::vector<int> experts;
    for (const int group : groups) {
      for (int i = 0; i < size; ++i) experts.push_back(group * size + i);
    }
    return experts;
  }

  const RouteArgs& args_;
  const RouteRule& rule_;
  std::vector<double> logits_;
  std::vector<double> scores_;
};

}  // namespace

Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args) {
  const std::int64_t tokens = logits.extent(0), num_chosen = args.rule.num_chosen;
  Routes routes = {.experts = exec.allocate(DType::kInt32, {tokens, num_chosen}),
                   .weights = exec.allocate(DType::kFloat32, {tokens, num_chosen})};
  const auto num_experts = static_cast<std::size_t>(logits.extent(1));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Router router(logits.span<float>().subspan(t * num_experts, num_experts), args);
    const std::vector<int> experts = router.choose();
    const std::vector<double> weights = router.weights_of(experts);
    std::copy(experts.begin(), experts.end(), routes.experts.data<std::int32_t>() + t * num_chosen);
    std::copy(weights.begin(), weights.end(), routes.weights.data<float>() + t * num_chosen);
  }
  return routes;
}

}  // namespace pagoda::reference
