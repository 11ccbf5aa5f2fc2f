#include "tests/support/expert_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

#include "backend/backend.h"

namespace pagoda::testing {
namespace {

template <typename T>
std::vector<T> values_of(Exec& exec, const Tensor& tensor) {
  PAGODA_CHECK(exec.evaluate({&tensor, 1}).ok(), "a test's values can be computed");
  const auto bytes = exec.read(tensor).value();
  const auto* const first = reinterpret_cast<const T*>(bytes.data());
  return std::vector<T>(first, first + tensor.shape().num_elements());
}

Routes body_of(Exec& exec, const Tensor& logits, const RouteArgs& args) {
  switch (exec.backend()) {
    case Backend::kReference:
      return reference::route(exec, logits, args);
    case Backend::kCpu:
      return cpu::route(exec, logits, args);
    case Backend::kMlx:
    case Backend::kCuda:
      return gpu::route(exec, logits, args);
  }
  return {};
}

// Returns the weights of given experts: those of a router whose other logits are lost. A bias that
// counts for the choice alone makes sure that the given experts are chosen.
std::vector<float> weights_of(std::span<const float> logits, std::span<const std::int32_t> experts,
                              const RouteArgs& args, std::span<const float> scales) {
  static const std::unique_ptr<Exec> exec = make_exec({.backend = Backend::kReference}).value();
  constexpr float kChosen = 1000, kOther = -1000;
  const auto n = static_cast<std::int64_t>(logits.size());
  std::vector<float> bias(logits.size(), kOther);
  for (std::size_t i = 0; i < experts.size(); ++i)
    bias[experts[i]] = kChosen - static_cast<float>(i);
  RouteArgs forced = {.rule = args.rule,
                      .choice_bias = exec->upload<float>(bias, {n}),
                      .expert_scales = scales.empty() ? Tensor() : exec->upload(scales, {n})};
  forced.rule.num_groups = forced.rule.num_chosen_groups = 1;
  const Routes routes = reference::route(*exec, exec->upload(logits, {1, n}), forced);
  return values_of<float>(*exec, routes.weights);
}

}  // namespace

RouteBody recording_body(ExpertChoices& choices) {
  return [&choices](Exec& exec, const Tensor& logits, const RouteArgs& args) {
    Routes routes = body_of(exec, logits, args);
    choices.push_back({values_of<std::int32_t>(exec, routes.experts), args.rule.num_chosen});
    return routes;
  };
}

RouteBody replaying_body(const ExpertChoices& choices, std::string& error) {
  return [&choices, &error, call = std::size_t{0}](Exec& exec, const Tensor& logits,
                                                   const RouteArgs& args) mutable {
    const std::int64_t tokens = logits.extent(0), n = logits.extent(1);
    const std::int64_t k = args.rule.num_chosen;
    if (call == choices.size() || std::ssize(choices[call].experts) != tokens * k) {
      error = fmt::format("call {} of route with {} tokens was not recorded", call, tokens);
      return body_of(exec, logits, args);
    }
    const std::vector<std::int32_t>& experts = choices[call++].experts;
    const std::vector<float> all = values_of<float>(exec, logits);
    std::vector<float> scales, weights;
    if (args.expert_scales.defined()) scales = values_of<float>(exec, args.expert_scales);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::vector<float> more = weights_of(
          std::span(all).subspan(t * n, n), std::span(experts).subspan(t * k, k), args, scales);
      weights.insert(weights.end(), more.begin(), more.end());
    }
    return Routes{.experts = exec.upload<std::int32_t>(experts, {tokens, k}),
                  .weights = exec.upload<float>(weights, {tokens, k})};
  };
}

double share_of_equal(const ExpertChoices& a, const ExpertChoices& b) {
  std::int64_t equal = 0, all = 0;
  for (std::size_t call = 0; call < std::min(a.size(), b.size()); ++call) {
    const std::size_t num_chosen = a[call].num_chosen;
    const std::size_t size = std::min(a[call].experts.size(), b[call].experts.size());
    for (std::size_t first = 0; first < size; first += num_chosen) {
      const auto experts = std::span(b[call].experts).subspan(first, num_chosen);
      for (std::size_t i = first; i < first + num_chosen; ++i)
        equal += std::ranges::find(experts, a[call].experts[i]) != experts.end() ? 1 : 0;
      all += static_cast<std::int64_t>(num_chosen);
    }
  }
  return all == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(all);
}

}  // namespace pagoda::testing
