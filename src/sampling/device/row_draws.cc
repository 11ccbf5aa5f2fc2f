#include "sampling/device/row_draws.h"

#include "draw/token_weight.h"
#include "ops/argmax/argmax.h"
#include "ops/sample/sample.h"
#include "sampling/device/unread_values.h"
#include "sampling/host/sampler.h"
#include "sampling/sampling_fields.h"
#include "tensor/upload_packet.h"

namespace pagoda {

bool RowDraws::cover(const SamplingParams& params) {
  static const SamplingParams defaults;
  bool is_covered = true;
  for_each_sampling_field([&](const auto& field) {
    is_covered &= !field.host_only || params.*field.member == defaults.*field.member;
  });
  return is_covered;
}

void RowDraws::clear() {
  inverse_temperatures_.clear();
  uniforms_.clear();
  top_ks_.clear();
  top_ps_.clear();
  min_p_margins_.clear();
  has_random_ = has_filters_ = false;
}

void RowDraws::add(const SamplingParams& params, const RandomKey& place) {
  const bool is_random = cover(params) && !is_greedy(params);
  const bool has_filter = is_random && (params.top_k > 0 || params.top_p < 1 || params.min_p > 0);
  const std::int64_t fraction = is_random ? fraction_of_uniform(random_uniform(place)) : 0;
  inverse_temperatures_.push_back(is_random ? 1.0f / params.temperature
                                            : kGreedyInverseTemperature);
  uniforms_.push_back(static_cast<std::int32_t>(fraction >> 31));
  uniforms_.push_back(static_cast<std::int32_t>(fraction & 0x7fffffff));
  top_ks_.push_back(has_filter ? params.top_k : 0);
  top_ps_.push_back(has_filter ? params.top_p : 1.0f);
  min_p_margins_.push_back(min_p_margin(has_filter ? params.min_p : 0, params.temperature));
  has_random_ |= is_random;
  has_filters_ |= has_filter;
}

Tensor RowDraws::draw(Exec& exec, const Tensor& logits) const {
  if (!has_random_) return argmax(exec, logits);
  SampleArgs args;
  RowFilters filters;
  UploadPacket packet;
  packet.add(inverse_temperatures_, args.inverse_temperature);
  packet.add(std::span(uniforms_), {num_rows(), 2}, args.uniforms);
  if (has_filters_) {
    packet.add(top_ks_, filters.top_k);
    packet.add(top_ps_, filters.top_p);
    packet.add(min_p_margins_, filters.min_p_margin);
    args.filters = &filters;
  }
  packet.upload(exec);
  return sample(exec, logits, args);
}

Tensor RowDraws::call_ops(Exec& exec, const Tensor& logits) {
  const std::int64_t rows = logits.extent(0);
  const RowFilters filters = {.top_k = unread_integers(exec, rows),
                              .top_p = unread_floats(exec, rows),
                              .min_p_margin = unread_floats(exec, rows)};
  SampleArgs args = {.inverse_temperature = unread_floats(exec, rows),
                     .uniforms = unread_integers(exec, 2 * rows).view({rows, 2})};
  sample(exec, logits, args);
  args.filters = &filters;
  sample(exec, logits, args);
  return argmax(exec, logits);
}

}  // namespace pagoda
