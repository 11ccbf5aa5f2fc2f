#include "convert/hf_rotation.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "convert/same_number.h"
#include "model/family.h"
#include "model/gguf/gguf_rope.h"
#include "model/rope_frequencies.h"

namespace pagoda {
namespace {

Status has_no_key(const ModelConfig& config, std::string_view what) {
  return unsupported("[quantize] {}: GGUF has no key for it in a {}", what, config.architecture);
}

// Returns the unscaled frequencies of `table`, each divided by the scaled one in `inv_freq`.
std::vector<float> divisors_of(const RopeTable& table, const std::vector<float>& inv_freq) {
  const std::vector<float> unscaled = rope_inverse_frequencies(table.rotary_dim(), table.theta, {});
  std::vector<float> divisors(unscaled.size());
  std::transform(unscaled.begin(), unscaled.end(), inv_freq.begin(), divisors.begin(),
                 [](float whole, float part) { return part == 0 ? kNeverRotates : whole / part; });
  return divisors;
}

bool are_all_one(const std::vector<float>& divisors) {
  return std::all_of(divisors.begin(), divisors.end(),
                     [](float divisor) { return are_same(divisor, 1); });
}

// Sets the keys of one model, and collects its divisors.
class RotationWriter {
 public:
  RotationWriter(const ModelConfig& config, GgufMetadata& metadata)
      : config_(config),
        family_(*find_family(config.architecture)),
        full_(config.rope_tables.front()),
        metadata_(metadata) {}

  Result<GgufDivisors> write() {
    PAGODA_RETURN_IF_ERROR(check_tables());
    set("rope.freq_base", static_cast<float>(full_.theta));
    PAGODA_RETURN_IF_ERROR(set_width("rope.dimension_count", full_, /*has_window=*/false));
    PAGODA_RETURN_IF_ERROR(set_scaling());
    if (family_.windows_have_own_rope) PAGODA_RETURN_IF_ERROR(set_window_keys());
    PAGODA_RETURN_IF_ERROR(set_query_growth());
    return std::move(divisors_);
  }

 private:
  template <typename T>
  void set(std::string_view key, const T& value) {
    metadata_.set(std::string(family_.gguf_architecture) + "." + std::string(key), value);
  }
  void set_positions(float positions) {
    set("rope.scaling.original_context_length", static_cast<std::uint32_t>(positions));
  }

  // Checks that the layers with another table than the first are those that the family implies:
  // GGUF has no key for them.
  Status check_tables() const {
    for (int i = 0; i < config_.num_layers(); ++i) {
      const AttentionConfig& layer = config_.layers[i].attention();
      bool has_other = false;
      if (family_.windows_have_own_rope) has_other = layer.window > 0;
      if (family_.windows == WindowRule::kUnrotated) has_other = (i + 1) % kUnrotatedInterval == 0;
      if (has_other != (layer.rope_table != 0))
        return has_no_key(config_, "the rotation of layer " + std::to_string(i));
    }
    return ok_status();
  }

  Status set_width(std::string_view key, const RopeTable& table, bool has_window) {
    const bool is_whole = table.rotary_dim() == config_.first_attention(has_window).head_dim;
    if (!is_whole && !family_.reads_gguf(key))
      return has_no_key(config_, "a rotation of a part of each head");
    set(key, static_cast<std::uint32_t>(table.rotary_dim()));
    return ok_status();
  }

  Status set_scaling() {
    if (!full_.long_inv_freq.empty()) return set_longrope();
    if (full_.scaling.type == RopeScalingType::kYarn) return set_yarn();
    if (full_.factor != 1) return has_no_key(config_, "an attention factor without YaRN");
    if (full_.scaling.type == RopeScalingType::kLinear) {
      set("rope.scaling.type", "linear");
      set("rope.scaling.factor", full_.scaling.factor);
      return ok_status();
    }
    std::vector<float> divisors = divisors_of(full_, full_.inv_freq);
    if (!are_all_one(divisors)) divisors_.always = std::move(divisors);
    return ok_status();
  }

  Status set_yarn() {
    const RopeScaling& scaling = full_.scaling;
    if (scaling.truncates != family_.gguf_yarn_truncates)
      return has_no_key(config_, "YaRN's truncate");
    set("rope.scaling.type", "yarn");
    set("rope.scaling.factor", scaling.factor);
    set_positions(scaling.original_positions);
    set("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    set("rope.scaling.yarn_beta_slow", scaling.beta_slow);
    const float whole = yarn_magnitude(scaling.factor, 1);
    if (are_same(full_.factor, whole)) return ok_status();
    if (!family_.reads_gguf("rope.scaling.yarn_log_multiplier")) {
      set("rope.scaling.yarn_attn_factor", full_.factor);
      return ok_status();
    }
    // The multiplier m for which whole / (0.1 m ln(factor) + 1) is the model's attention factor.
    const double multiplier =
        (double{whole} / full_.factor - 1) / (0.1 * std::log(double{scaling.factor}));
    if (!(multiplier > 0)) return has_no_key(config_, "YaRN's attention factor");
    set("rope.scaling.yarn_log_multiplier", static_cast<float>(multiplier));
    return ok_status();
  }

  Status set_longrope() {
    if (!family_.reads_gguf("rope.scaling.attn_factor")) return has_no_key(config_, "LongRoPE");
    set_positions(static_cast<float>(full_.original_positions));
    set("rope.scaling.attn_factor", full_.factor);
    divisors_.of_long = divisors_of(full_, full_.long_inv_freq);
    divisors_.of_short = divisors_of(full_, full_.inv_freq);
    return ok_status();
  }

  Status set_window_keys() {
    const AttentionConfig& layer = config_.first_attention(/*has_window=*/true);
    if (layer.window == 0) return ok_status();
    const RopeTable& table = config_.rope_tables[layer.rope_table];
    if (table.factor != 1 || !are_all_one(divisors_of(table, table.inv_freq)))
      return has_no_key(config_, "a scaling of windows' rotation");
    set("rope.freq_base_swa", static_cast<float>(table.theta));
    constexpr std::string_view kWidth = "rope.dimension_count_swa";
    return family_.reads_gguf(kWidth) ? set_width(kWidth, table, /*has_window=*/true) : ok_status();
  }

  Status set_query_growth() {
    const QueryGrowth& growth = config_.query_growth;
    if (growth.factor == 0) return ok_status();
    const bool has_positions =
        full_.scaling.type == RopeScalingType::kYarn &&
        static_cast<float>(growth.positions) == full_.scaling.original_positions;
    if (!family_.reads_gguf("attention.temperature_scale") || !has_positions)
      return has_no_key(config_, "queries that grow with their position");
    set("attention.temperature_scale", growth.factor);
    return ok_status();
  }

  const ModelConfig& config_;
  const Family& family_;
  const RopeTable& full_;
  GgufMetadata& metadata_;
  GgufDivisors divisors_;
};

}  // namespace

Result<GgufDivisors> set_rotation_keys(const ModelConfig& config, GgufMetadata& metadata) {
  return RotationWriter(config, metadata).write();
}

}  // namespace pagoda
