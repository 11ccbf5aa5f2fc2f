#include "model/gguf/gguf_rope.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/rope_frequencies.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr NumberRange kGgufMagnitudeRange{1e-3, 1e3};
constexpr std::string_view kRotaryDim = "rope.dimension_count";

struct GgufRopeContext {
  const Checkpoint& checkpoint;
  const ArchitectureKeys& keys;
  const Family& family;
  int trained_positions;
};

// Reads the factor as llama.cpp does: a factor without a type is linear; scale_linear is the
// factor's older name.
Result<double> read_factor(const ArchitectureKeys& keys) {
  const char* key = keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  PAGODA_ASSIGN_OR_RETURN(const double factor, keys.number_or(key, {0, kRopeFactorRange.max}, 0));
  if (factor == 0) return factor;  // 0 means "no scaling"
  return keys.number(key, kRopeFactorRange);
}

Result<int> original_context(const GgufRopeContext& context) {
  return context.keys.integer_or("rope.scaling.original_context_length", kPositionRange,
                                 context.trained_positions);
}

// Reads YaRN's parameters. The attention factor has a key, or is computed from the scaling factor.
Status read_gguf_yarn(const GgufRopeContext& context, double factor, RopeScaling& scaling,
                      RopeTable& table) {
  const ArchitectureKeys& keys = context.keys;
  if (table.theta <= 1) {
    return data_loss("[gguf] key {}: expected more than 1 beside yarn, got {}",
                     keys.name("rope.freq_base"), table.theta);
  }
  PAGODA_ASSIGN_OR_RETURN(const int original, original_context(context));
  PAGODA_ASSIGN_OR_RETURN(const double fast,
                          keys.number_or("rope.scaling.yarn_beta_fast", kRopeFactorRange, 32));
  PAGODA_ASSIGN_OR_RETURN(const double slow,
                          keys.number_or("rope.scaling.yarn_beta_slow", kRopeFactorRange, 1));
  PAGODA_ASSIGN_OR_RETURN(const double of_all,
                          keys.number_or("rope.scaling.yarn_log_multiplier", {0, 1e3}, 0));
  const double otherwise = of_all == 0
                               ? yarn_magnitude(factor, 1)
                               : double{yarn_magnitude(factor, 1)} / yarn_magnitude(factor, of_all);
  PAGODA_ASSIGN_OR_RETURN(const double magnitude, keys.number_or("rope.scaling.yarn_attn_factor",
                                                                 kGgufMagnitudeRange, otherwise));
  scaling.type = RopeScalingType::kYarn;
  scaling.original_positions = static_cast<float>(original);
  scaling.beta_fast = static_cast<float>(fast);
  scaling.beta_slow = static_cast<float>(slow);
  scaling.truncates = context.family.gguf_yarn_truncates;
  table.factor = static_cast<float>(magnitude);
  return ok_status();
}

// Refuses a YaRN attention factor without YaRN: llama.cpp would apply it to any type of scaling.
Status check_no_yarn_factor(const ArchitectureKeys& keys) {
  constexpr std::string_view kKey = "rope.scaling.yarn_attn_factor";
  PAGODA_ASSIGN_OR_RETURN(const double factor, keys.number_or(kKey, kGgufMagnitudeRange, 1));
  if (factor == 1) return ok_status();
  return unsupported("[gguf] key {}: {} is not supported without rope.scaling.type yarn",
                     keys.name(kKey), factor);
}

Result<RopeScaling> read_gguf_scaling(const GgufRopeContext& context, RopeTable& table) {
  const ArchitectureKeys& keys = context.keys;
  PAGODA_ASSIGN_OR_RETURN(
      const std::string_view type,
      context.checkpoint.gguf()->string_or(keys.name("rope.scaling.type"), "linear"));
  if (type != "none" && type != "linear" && type != "yarn") {
    return unsupported("[gguf] key {}: {} is not supported; none, linear and yarn are",
                       keys.name("rope.scaling.type"), printable(type));
  }
  PAGODA_ASSIGN_OR_RETURN(const double factor, read_factor(keys));
  RopeScaling scaling;
  if (type != "yarn" || factor == 0) PAGODA_RETURN_IF_ERROR(check_no_yarn_factor(keys));
  if (type == "none" || factor == 0) return scaling;
  scaling.type = RopeScalingType::kLinear;
  scaling.factor = static_cast<float>(factor);
  if (type == "yarn") PAGODA_RETURN_IF_ERROR(read_gguf_yarn(context, factor, scaling, table));
  return scaling;
}

// Divides frequencies by a tensor of divisors, one per pair. Such a tensor is Llama 3's scaling,
// computed by the converter, or LongRoPE's.
Result<std::vector<float>> divided_by(const Checkpoint& checkpoint, std::string_view name,
                                      std::vector<float> inv_freq) {
  PAGODA_ASSIGN_OR_RETURN(const HostTensor divisors, checkpoint.tensor(name));
  const auto num_pairs = static_cast<std::int64_t>(inv_freq.size());
  if (divisors.format != WeightFormat::kF32 || divisors.shape != Shape{num_pairs}) {
    return data_loss("[gguf] tensor {}: expected {} values of F32, got {} of {}", name, num_pairs,
                     to_string(divisors.shape), traits_of(divisors.format).name);
  }
  for (std::int64_t i = 0; i < num_pairs; ++i) {
    float divisor = 0;
    std::memcpy(&divisor, divisors.bytes.data() + i * sizeof(divisor), sizeof(divisor));
    if (divisor >= kNeverRotates && std::isfinite(divisor)) {
      inv_freq[i] = 0;
      continue;
    }
    if (!(divisor >= kRopeFactorRange.min && divisor <= kRopeFactorRange.max)) {
      return data_loss("[gguf] tensor {}: expected divisors of {} to {}, got {}", name,
                       kRopeFactorRange.min, kRopeFactorRange.max, divisor);
    }
    inv_freq[i] /= divisor;
  }
  return inv_freq;
}

Status read_gguf_divisors(const GgufRopeContext& context, RopeTable& table) {
  constexpr std::string_view kFreqs = "rope_freqs.weight";
  constexpr std::string_view kLong = "rope_factors_long.weight";
  constexpr std::string_view kShort = "rope_factors_short.weight";
  const Checkpoint& checkpoint = context.checkpoint;
  if (checkpoint.has(kFreqs)) {
    PAGODA_ASSIGN_OR_RETURN(table.inv_freq, divided_by(checkpoint, kFreqs, table.inv_freq));
  }
  if (checkpoint.has(kLong) != checkpoint.has(kShort)) {
    return unsupported("[gguf] tensor {} is not supported without {} beside it",
                       checkpoint.has(kLong) ? kLong : kShort,
                       checkpoint.has(kLong) ? kShort : kLong);
  }
  PAGODA_ASSIGN_OR_RETURN(const double magnitude, context.keys.number_or("rope.scaling.attn_factor",
                                                                         kGgufMagnitudeRange, 1));
  table.factor *= static_cast<float>(magnitude);
  if (!checkpoint.has(kLong)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(table.original_positions, original_context(context));
  PAGODA_ASSIGN_OR_RETURN(table.long_inv_freq, divided_by(checkpoint, kLong, table.inv_freq));
  PAGODA_ASSIGN_OR_RETURN(table.inv_freq, divided_by(checkpoint, kShort, table.inv_freq));
  return ok_status();
}

Result<int> read_gguf_rotary_dim(const GgufRopeContext& context, std::string_view key,
                                 int head_dim) {
  PAGODA_ASSIGN_OR_RETURN(const int dim, context.keys.integer_or(key, kHeadDimRange, head_dim));
  if (dim == head_dim) return dim;
  if (context.family.reads_gguf(kRotaryDim) && is_rotary_width(dim, head_dim)) return dim;
  return unsupported("[gguf] key {}: {} in heads of {} is not supported", context.keys.name(key),
                     dim, head_dim);
}

// Adds a rope table and assigns it to the layers for which `is_other` is true.
template <typename IsOther>
void add_table(ModelConfig& config, RopeTable table, IsOther&& is_other) {
  for (int i = 0; i < config.num_layers(); ++i) {
    if (is_other(i))
      config.layers[i].attention().rope_table = static_cast<int>(config.rope_tables.size());
  }
  config.rope_tables.push_back(std::move(table));
}

// Adds the rope table of layers with a window. It has its own theta and no scaling.
Status add_window_table(const GgufRopeContext& context, ModelConfig& config) {
  constexpr std::string_view kOwnKey = "rope.dimension_count_swa";
  const bool has_own_key = context.family.reads_gguf(kOwnKey) && context.keys.has(kOwnKey);
  PAGODA_ASSIGN_OR_RETURN(
      const int rotary_dim,
      read_gguf_rotary_dim(context, has_own_key ? kOwnKey : kRotaryDim,
                           config.first_attention(/*has_window=*/true).head_dim));
  RopeTable table = {.style = context.family.gguf_rope_style};
  const double of_family = context.family.gguf_window_theta;
  const double otherwise = of_family != 0 ? of_family : config.rope_tables.front().theta;
  PAGODA_ASSIGN_OR_RETURN(table.theta,
                          context.keys.number_or("rope.freq_base_swa", kThetaRange, otherwise));
  table.inv_freq = rope_inverse_frequencies(rotary_dim, table.theta, {});
  add_table(config, std::move(table),
            [&](int i) { return config.layers[i].attention().window > 0; });
  return ok_status();
}

}  // namespace

Status read_gguf_rope(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                      const Family& family, ModelConfig& config) {
  const GgufRopeContext context = {.checkpoint = checkpoint,
                                   .keys = keys,
                                   .family = family,
                                   .trained_positions = config.max_position_embeddings};
  const int head_dim = config.first_attention(/*has_window=*/false).head_dim;
  RopeTable table = {.style = family.gguf_rope_style};
  PAGODA_ASSIGN_OR_RETURN(table.theta, keys.number_or("rope.freq_base", kThetaRange, table.theta));
  PAGODA_ASSIGN_OR_RETURN(const int rotary_dim,
                          read_gguf_rotary_dim(context, kRotaryDim, head_dim));
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling, read_gguf_scaling(context, table));
  table.inv_freq = rope_inverse_frequencies(rotary_dim, table.theta, scaling);
  table.scaling = scaling;
  PAGODA_RETURN_IF_ERROR(read_gguf_divisors(context, table));
  config.rope_tables = {std::move(table)};
  if (family.windows_have_own_rope) PAGODA_RETURN_IF_ERROR(add_window_table(context, config));
  if (family.windows == WindowRule::kUnrotated) {
    add_table(config, no_rotation(head_dim),
              [](int i) { return (i + 1) % kUnrotatedInterval == 0; });
  }
  if (!family.reads_gguf("attention.temperature_scale")) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const double growth,
                          keys.number_or("attention.temperature_scale", {0, 1e3}, 0));
  config.query_growth.factor = static_cast<float>(growth);
  PAGODA_ASSIGN_OR_RETURN(config.query_growth.positions, original_context(context));
  return ok_status();
}

}  // namespace pagoda
