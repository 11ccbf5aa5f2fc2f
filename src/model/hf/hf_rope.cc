#include "model/hf/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "model/config_limits.h"
#include "model/hf/hf_keys.h"
#include "model/hf/hf_layers.h"
#include "model/hf/hf_rope_blocks.h"
#include "model/rope_frequencies.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr NumberRange kMagnitudeRange{1e-3, 1e3};

// The values that the readers of a block need besides the block.
struct RopeContext {
  const Family& family;
  int head_dim;
  int trained_positions;
};

// The keys that only some types' readers read. kRopeKeys also has those that all types read.
struct RopeType {
  std::string_view name;
  std::vector<std::string_view> keys;
};

const RopeType* find_type(std::string_view name) {
  static const std::vector<RopeType> types = {
      {"default", {}},
      {"linear", {"factor"}},
      {"llama3",
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
      {"yarn",
       {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow",
        "mscale", "mscale_all_dim", "truncate"}},
      {"proportional", {"factor"}},
      {"longrope",
       {"factor", "original_max_position_embeddings", "attention_factor", "long_factor",
        "short_factor"}},
  };
  const auto type = std::find_if(types.begin(), types.end(),
                                 [name](const RopeType& each) { return each.name == name; });
  return type == types.end() ? nullptr : &*type;
}

Result<std::string> read_type(const JsonFields& block, const Family& family) {
  const char* key = block.has("rope_type") ? "rope_type" : "type";
  PAGODA_ASSIGN_OR_RETURN(std::string type, block.text_or(key, "default"));
  // Phi-3's first files call LongRoPE "su".
  if (type == "su" || (type == "yarn" && family.calls_longrope_yarn)) type = "longrope";
  // In text, all sections of mrope have the same position.
  if (type == "mrope" && family.reads("mrope_section")) type = "default";
  if (type == "dynamic" || type == "ntk") {
    return unsupported(
        "[config] {}: rope type {} is not supported: a cached key would depend on how long a "
        "context reads it; yarn, linear and llama3 do not",
        block.where(), type);
  }
  if (find_type(type) != nullptr) return type;
  return unsupported(
      "[config] {}: rope type {} is not supported; default, linear, llama3, yarn, longrope and "
      "proportional are",
      block.where(), printable(type));
}

// Refuses a number that this type of rotation does not read: it was meant for another type.
Status check_no_other_numbers(const JsonFields& block, const RopeType& type) {
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "attention_factor", "beta_fast",
        "beta_slow", "mscale", "mscale_all_dim", "long_factor", "short_factor"}) {
    if (!block.has(key) || *block.find(key) == 1) continue;
    if (std::find(type.keys.begin(), type.keys.end(), key) != type.keys.end()) continue;
    return unsupported("[config] {}: {} beside rope type {} is not supported", block.where(), key,
                       type.name);
  }
  return ok_status();
}

// Returns the positions that a model was trained for before its context was stretched.
Result<int> original_positions(const RopeContext& context, const JsonFields& block) {
  return block.integer_or("original_max_position_embeddings", kPositionRange,
                          context.trained_positions);
}

// Returns how many times longer the stretched context is than the original one.
Result<double> stretch_factor(const RopeContext& context, const JsonFields& block, int original) {
  return block.number_or("factor", kRopeFactorRange,
                         static_cast<double>(context.trained_positions) / original);
}

Status read_llama3(const JsonFields& block, RopeScaling& scaling) {
  PAGODA_ASSIGN_OR_RETURN(const double low, block.number("low_freq_factor", kRopeFactorRange));
  PAGODA_ASSIGN_OR_RETURN(const double high, block.number("high_freq_factor", kRopeFactorRange));
  scaling.low_freq_factor = static_cast<float>(low);
  scaling.high_freq_factor = static_cast<float>(high);
  if (scaling.low_freq_factor < scaling.high_freq_factor) return ok_status();
  return block.wrong("high_freq_factor", fmt::format("more than low_freq_factor ({})", low));
}

Status read_yarn(const JsonFields& block, double factor, RopeScaling& scaling, RopeTable& table) {
  PAGODA_ASSIGN_OR_RETURN(const double fast, block.number_or("beta_fast", kRopeFactorRange, 32));
  PAGODA_ASSIGN_OR_RETURN(const double slow, block.number_or("beta_slow", kRopeFactorRange, 1));
  // transformers takes null for false.
  const bool is_null = block.json().contains("truncate") && !block.has("truncate");
  PAGODA_ASSIGN_OR_RETURN(scaling.truncates, block.boolean_or("truncate", !is_null));
  PAGODA_ASSIGN_OR_RETURN(const double mscale, block.number_or("mscale", {0, 1e3}, 0));
  PAGODA_ASSIGN_OR_RETURN(const double of_all, block.number_or("mscale_all_dim", {0, 1e3}, 0));
  const double otherwise = mscale != 0 && of_all != 0 ? double{yarn_magnitude(factor, mscale)} /
                                                            yarn_magnitude(factor, of_all)
                                                      : yarn_magnitude(factor, 1);
  PAGODA_ASSIGN_OR_RETURN(const double magnitude,
                          block.number_or("attention_factor", kMagnitudeRange, otherwise));
  scaling.beta_fast = static_cast<float>(fast);
  scaling.beta_slow = static_cast<float>(slow);
  table.factor = static_cast<float>(magnitude);
  return ok_status();
}

Result<RopeScaling> read_scaling(const RopeContext& context, const JsonFields& block,
                                 std::string_view type, RopeTable& table) {
  RopeScaling scaling;
  if (type == "default") return scaling;
  if (type == "linear") {
    PAGODA_ASSIGN_OR_RETURN(const double factor, block.number("factor", kRopeFactorRange));
    scaling.type = RopeScalingType::kLinear;
    scaling.factor = static_cast<float>(factor);
    return scaling;
  }
  PAGODA_ASSIGN_OR_RETURN(const int original, original_positions(context, block));
  scaling.original_positions = static_cast<float>(original);
  if (type == "llama3") {
    PAGODA_ASSIGN_OR_RETURN(const double factor, block.number("factor", kRopeFactorRange));
    scaling.type = RopeScalingType::kLlama3;
    scaling.factor = static_cast<float>(factor);
    PAGODA_RETURN_IF_ERROR(read_llama3(block, scaling));
    return scaling;
  }
  PAGODA_ASSIGN_OR_RETURN(const double factor, stretch_factor(context, block, original));
  scaling.type = RopeScalingType::kYarn;
  scaling.factor = static_cast<float>(factor);
  if (table.theta <= 1) return block.wrong("rope_theta", "more than 1 beside yarn");
  PAGODA_RETURN_IF_ERROR(read_yarn(block, factor, scaling, table));
  return scaling;
}

// Divides frequencies by LongRoPE's factors, one per pair.
Result<std::vector<float>> divided(const JsonFields& block, const char* key,
                                   const std::vector<float>& inv_freq) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<double> factors, block.numbers(key, kRopeFactorRange));
  if (factors.size() != inv_freq.size())
    return block.wrong(key, fmt::format("{} numbers", inv_freq.size()));
  std::vector<float> result(inv_freq.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = inv_freq[i] / static_cast<float>(factors[i]);
  return result;
}

Status read_longrope(const RopeContext& context, const JsonFields& block, RopeTable& table) {
  PAGODA_ASSIGN_OR_RETURN(table.original_positions, original_positions(context, block));
  PAGODA_ASSIGN_OR_RETURN(const double factor,
                          stretch_factor(context, block, table.original_positions));
  const double otherwise =
      factor <= 1 || table.original_positions == 1
          ? 1
          : std::sqrt(1 + std::log(factor) / std::log(table.original_positions));
  PAGODA_ASSIGN_OR_RETURN(const double magnitude,
                          block.number_or("attention_factor", kMagnitudeRange, otherwise));
  table.factor = static_cast<float>(magnitude);
  PAGODA_ASSIGN_OR_RETURN(table.long_inv_freq, divided(block, "long_factor", table.inv_freq));
  PAGODA_ASSIGN_OR_RETURN(table.inv_freq, divided(block, "short_factor", table.inv_freq));
  return ok_status();
}

Result<int> read_rotary_dim(const RopeContext& context, const JsonFields& block) {
  constexpr const char* kKey = "partial_rotary_factor";
  PAGODA_ASSIGN_OR_RETURN(const double part, block.number_or(kKey, {0, 1}, 1));
  if (part == 1) return context.head_dim;
  const int rotary_dim = static_cast<int>(context.head_dim * part);
  if (context.family.reads(kKey) && is_rotary_width(rotary_dim, context.head_dim))
    return rotary_dim;
  return unsupported("[config] {}: partial_rotary_factor {} is not supported in heads of {}",
                     block.where(), part, context.head_dim);
}

// Reads Gemma 4's rotation of a part of a head. Its frequencies are those of a head that rotates as
// a whole, but zero for the pairs that do not rotate.
Status read_proportional(const RopeContext& context, const JsonFields& block, RopeTable& table) {
  PAGODA_ASSIGN_OR_RETURN(const double part, block.number_or("partial_rotary_factor", {0, 1}, 1));
  PAGODA_ASSIGN_OR_RETURN(const double factor, block.number_or("factor", kRopeFactorRange, 1));
  table.inv_freq = rope_inverse_frequencies(
      context.head_dim, table.theta,
      {.type = RopeScalingType::kLinear, .factor = static_cast<float>(factor)});
  const auto num_rotated = static_cast<std::ptrdiff_t>(part * context.head_dim / 2);
  std::fill(table.inv_freq.begin() + num_rotated, table.inv_freq.end(), 0.0f);
  return ok_status();
}

Result<RopeTable> read_table(const RopeContext& context, const RopeBlock& written) {
  const JsonFields block = written.fields();
  PAGODA_ASSIGN_OR_RETURN(const std::string type, read_type(block, context.family));
  PAGODA_RETURN_IF_ERROR(check_rope_keys(block, context.family));
  PAGODA_RETURN_IF_ERROR(check_no_other_numbers(block, *find_type(type)));
  RopeTable table = {.style = context.family.rope_style};
  PAGODA_ASSIGN_OR_RETURN(table.theta, block.number_or("rope_theta", kThetaRange, table.theta));
  if (type == "proportional") {
    PAGODA_RETURN_IF_ERROR(read_proportional(context, block, table));
    return table;
  }
  PAGODA_ASSIGN_OR_RETURN(const int rotary_dim, read_rotary_dim(context, block));
  if (type == "longrope") {
    table.inv_freq = rope_inverse_frequencies(rotary_dim, table.theta, {});
    PAGODA_RETURN_IF_ERROR(read_longrope(context, block, table));
    return table;
  }
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling, read_scaling(context, block, type, table));
  table.inv_freq = rope_inverse_frequencies(rotary_dim, table.theta, scaling);
  table.scaling = scaling;
  return table;
}

// Reads Ministral 3's llama_4_scaling_beta, a key beside those of its YaRN.
Status read_query_growth(const RopeContext& context, const JsonFields& block, ModelConfig& config) {
  if (!context.family.reads("llama_4_scaling_beta") || !block.has("llama_4_scaling_beta"))
    return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const double beta, block.number("llama_4_scaling_beta", {0, 1e3}));
  PAGODA_ASSIGN_OR_RETURN(config.query_growth.positions, original_positions(context, block));
  config.query_growth.factor = static_cast<float>(beta);
  if (beta == 0 || config.rope_tables.front().rotary_dim() == context.head_dim) return ok_status();
  return unsupported("[config] {}: llama_4_scaling_beta of heads that are rotated in part",
                     block.where());
}

// Adds a rope table for the layers that `is_other` marks, if there are any.
void set_table(ModelConfig& config, const RopeTable& table, const std::vector<bool>& is_other) {
  for (int i = 0; i < config.num_layers(); ++i) {
    if (is_other[i])
      config.layers[i].attention().rope_table = static_cast<int>(config.rope_tables.size());
  }
  if (std::find(is_other.begin(), is_other.end(), true) != is_other.end())
    config.rope_tables.push_back(table);
}

}  // namespace

Status read_rope(const JsonFields& fields, const Family& family, ModelConfig& config) {
  const int num_layers = config.num_layers();
  PAGODA_ASSIGN_OR_RETURN(const RopeBlocks blocks, read_rope_blocks(fields, family));
  const RopeContext context = {.family = family,
                               .head_dim = config.first_attention(/*has_window=*/false).head_dim,
                               .trained_positions = config.max_position_embeddings};
  PAGODA_ASSIGN_OR_RETURN(RopeTable full, read_table(context, blocks.full));
  config.rope_tables = {std::move(full)};
  std::vector<bool> is_other(num_layers);
  if (family.windows_have_own_rope) {
    RopeContext of_windows = context;
    of_windows.head_dim = config.first_attention(/*has_window=*/true).head_dim;
    PAGODA_ASSIGN_OR_RETURN(const RopeTable table, read_table(of_windows, blocks.windows));
    for (int i = 0; i < num_layers; ++i) is_other[i] = config.layers[i].attention().window > 0;
    set_table(config, table, is_other);
  }
  if (family.reads("no_rope_layers")) {
    PAGODA_ASSIGN_OR_RETURN(is_other, read_rotated_layers(fields, num_layers));
    is_other.flip();
    set_table(config, no_rotation(context.head_dim), is_other);
  }
  return read_query_growth(context, blocks.full.fields(), config);
}

}  // namespace pagoda
