#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/cpu/cpu_exec.h"
#include "ops/route/route.h"

namespace pagoda::cpu {
namespace {

constexpr float kWorst = -std::numeric_limits<float>::infinity();

// Chooses the experts of a token; a thread uses one for all its tokens. Sums are in the order of
// experts, so a token's bits depend on its logits alone.
class Router {
 public:
  Router(const RouteArgs& args, int num_experts)
      : rule_(args.rule),
        num_experts_(num_experts),
        bias_(args.choice_bias.defined() ? args.choice_bias.data<float>() : nullptr),
        scales_(args.expert_scales.defined() ? args.expert_scales.data<float>() : nullptr),
        compares_scores_(bias_ != nullptr || args.rule.num_groups > 1) {}

  void route(const float* logits, std::int32_t* experts, float* weights) {
    set_scores(logits);
    set_values();
    if (rule_.num_chosen_groups < rule_.num_groups) drop_groups();
    for (int i = 0; i < rule_.num_chosen; ++i) {
      experts[i] = best_of(values_.data(), num_experts_);
      is_open_[experts[i]] = false;
      weights[i] = scores_[experts[i]];
    }
    weigh(experts, weights);
  }

 private:
  // Divides e^(value - largest) by their sum.
  static void softmax(float* values, int count) {
    const float largest = *std::max_element(values, values + count);
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - largest);
    for (int i = 0; i < count; ++i) values[i] = static_cast<float>(values[i] / sum);
  }

  void set_scores(const float* logits) {
    for (int e = 0; e < num_experts_; ++e) {
      const float cap = rule_.logit_cap;
      scores_[e] = cap == 0 ? logits[e] : cap * std::tanh(logits[e] / cap);
    }
    if (!compares_scores_) values_ = scores_;
    if (rule_.gating == Gating::kSigmoid) {
      for (int e = 0; e < num_experts_; ++e) scores_[e] = 1 / (1 + std::exp(-scores_[e]));
    } else if (rule_.gating == Gating::kSoftmax) {
      softmax(scores_.data(), num_experts_);
    }
  }

  // Sets what experts are compared by; all may be chosen.
  void set_values() {
    if (compares_scores_) values_ = scores_;
    for (int e = 0; e < num_experts_; ++e) {
      if (bias_ != nullptr) values_[e] += bias_[e];
      if (std::isnan(values_[e])) values_[e] = kWorst;
      is_open_[e] = true;
    }
  }

  // Returns the first of the largest values that is open.
  int best_of(const float* values, int count) const {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      if (is_open_[i] && (best < 0 || values[i] > values[best])) best = i;
    }
    return best;
  }

  // Closes the experts of all but the best groups.
  void drop_groups() {
    const int size = num_experts_ / rule_.num_groups;
    std::array<float, kMostExperts> sums;
    for (int group = 0; group < rule_.num_groups; ++group) {
      const float* values = values_.data() + group * size;
      float first = kWorst, second = kWorst;
      for (int i = 0; i < size; ++i) {
        if (values[i] > first) {
          second = std::exchange(first, values[i]);
        } else {
          second = std::max(second, values[i]);
        }
      }
      sums[group] = size > 1 ? first + second : first;
    }
    // Groups are as many as experts at most, so the flags serve both.
    for (int i = 0; i < rule_.num_chosen_groups; ++i) {
      is_open_[best_of(sums.data(), rule_.num_groups)] = false;
    }
    for (int group = rule_.num_groups - 1; group >= 0; --group) {
      const bool is_chosen = !is_open_[group];
      std::fill_n(is_open_.begin() + group * size, size, is_chosen);
    }
  }

  void weigh(const std::int32_t* experts, float* weights) const {
    const int count = rule_.num_chosen;
    if (rule_.gating == Gating::kSoftmaxOfChosen) softmax(weights, count);
    float divisor = 1;
    if (rule_.is_normalised) {
      float sum = 0;
      for (int i = 0; i < count; ++i) sum += weights[i];
      divisor = std::max(sum, rule_.least_sum) + rule_.sum_offset;
    }
    for (int i = 0; i < count; ++i) {
      weights[i] = weights[i] / divisor * rule_.factor;
      if (scales_ != nullptr) weights[i] *= scales_[experts[i]];
    }
  }

  const RouteRule& rule_;
  int num_experts_;
  const float* bias_;
  const float* scales_;
  bool compares_scores_;  // else logits
  std::array<float, kMostExperts> scores_;
  std::array<float, kMostExperts> values_;
  std::array<bool, kMostExperts> is_open_;
};

}  // namespace

Routes route(Exec& exec, const Tensor& logits, const RouteArgs& args) {
  const std::int64_t tokens = logits.extent(0), num_chosen = args.rule.num_chosen;
  const std::int64_t num_experts = logits.extent(1);
  Routes routes = {.experts = exec.allocate(DType::kInt32, {tokens, num_chosen}),
                   .weights = exec.allocate(DType::kFloat32, {tokens, num_chosen})};
  const float* from = logits.data<float>();
  auto* experts = routes.experts.data<std::int32_t>();
  float* weights = routes.weights.data<float>();
  pool_of(exec).parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end, int) {
    Router router(args, static_cast<int>(num_experts));
    for (std::int64_t t = begin; t < end; ++t) {
      router.route(from + t * num_experts, experts + t * num_chosen, weights + t * num_chosen);
    }
  });
  return routes;
}

}  // namespace pagoda::cpu
