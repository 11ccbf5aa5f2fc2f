// RouteRule: how a mixture of experts chooses experts from a router's logits. A checkpoint's family
// and config decide it, and the op is told it.
#pragma once

#include <cstdint>
#include <string_view>

namespace pagoda {

// The function from logits to scores.
enum class Gating : std::uint8_t {
  kSoftmax,          // over all experts
  kSigmoid,          // of each logit
  kSoftmaxOfChosen,  // over the chosen experts alone, which are chosen by their logits (gpt-oss)
};

// Returns "softmax", "sigmoid", "softmax of the chosen".
constexpr std::string_view gating_name(Gating gating) {
  switch (gating) {
    case Gating::kSoftmax:
      return "softmax";
    case Gating::kSigmoid:
      return "sigmoid";
    case Gating::kSoftmaxOfChosen:
      return "softmax of the chosen";
  }
  return "";
}

inline constexpr int kMostExperts = 512;       // of a layer
inline constexpr int kMostChosenExperts = 32;  // of a token
inline constexpr int kMostExpertGroups = 32;   // of a layer

// The weight of a chosen expert is
//
//   factor * scale of the expert * score / (max(sum of the chosen scores, least_sum) + sum_offset)
//
// and without the division if is_normalised is false.
struct RouteRule {
  int num_chosen = 1;  // experts of a token
  Gating gating = Gating::kSoftmax;
  // Experts are in groups of equal size, one after the other. A token chooses among the experts of
  // its best groups (DeepSeek-V3, 2024, arXiv:2412.19437). A group is as good as the sum of its two
  // best experts, or as its only one.
  int num_groups = 1;
  int num_chosen_groups = 1;
  bool is_normalised = false;
  float least_sum = 0;
  float sum_offset = 0;
  float factor = 1;
  float logit_cap = 0;  // 0: none; else logits become cap * tanh(logit / cap)

  bool operator==(const RouteRule&) const = default;
};

}  // namespace pagoda
