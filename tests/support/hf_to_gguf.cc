#include "tests/support/hf_to_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/check.h"

namespace pagoda::testing {
namespace {

// Returns the architecture's name in GGUF, where "llama" includes Mistral's models.
std::string gguf_architecture(const ModelConfig& config) {
  return config.architecture == "mistral" ? "llama" : config.architecture;
}

void set_keys(const ModelConfig& config, double rope_theta, GgufWriter& writer) {
  const std::string arch = gguf_architecture(config);
  const AttentionConfig& layer = config.layers.front().attention();
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  writer.set("general.architecture", arch)
      .set(arch + ".block_count", u32(config.num_layers()))
      .set(arch + ".context_length", u32(config.max_position_embeddings))
      .set(arch + ".embedding_length", u32(config.hidden_size))
      .set(arch + ".feed_forward_length", u32(config.layers.front().dense_mlp().intermediate_size))
      .set(arch + ".attention.head_count", u32(layer.num_heads))
      .set(arch + ".attention.head_count_kv", u32(layer.num_kv_heads))
      .set(arch + ".attention.key_length", u32(layer.head_dim))
      .set(arch + ".attention.value_length", u32(layer.head_dim))
      .set(arch + ".rope.dimension_count", u32(layer.head_dim))
      .set(arch + ".rope.freq_base", static_cast<float>(rope_theta))
      .set(arch + ".attention.layer_norm_rms_epsilon", config.rms_norm_eps)
      .set("tokenizer.ggml.eos_token_id", u32(config.eos_token_ids.at(0)));
  if (layer.window > 0) writer.set(arch + ".attention.sliding_window", u32(layer.window));
}

// Adds Llama 3's scaling, which GGUF stores as a divisor of each pair's frequency.
void add_rope_divisors(const ModelConfig& config, double rope_theta, GgufWriter& writer) {
  std::vector<float> divisors;
  bool scaled = false;
  const std::vector<float>& inv_freq = config.rope_tables.front().inv_freq;
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double unscaled = std::pow(
        rope_theta, -2.0 * static_cast<double>(i) / config.layers.front().attention().head_dim);
    divisors.push_back(static_cast<float>(unscaled / inv_freq[i]));
    scaled = scaled || std::abs(divisors.back() - 1) > 1e-3;
  }
  const auto count = static_cast<std::int64_t>(divisors.size());
  if (scaled) writer.add_tensor("rope_freqs.weight", {count}, WeightFormat::kF32, divisors);
}

std::string gguf_name(std::string name) {
  static const std::vector<std::pair<std::string, std::string>> parts = {
      {"model.layers.", "blk."},           {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},       {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  for (const auto& [theirs, ggufs] : parts) {
    if (const std::size_t at = name.find(theirs); at != std::string::npos)
      name.replace(at, theirs.size(), ggufs);
  }
  return name;
}

std::vector<float> values_of(const HostTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.num_elements()));
  traits_of(tensor.format).dequantize(tensor.bytes, values.data());
  return values;
}

// Puts the rows of q and k in the llama converter's order: the two halves of a head are
// interleaved, so that rotary pairs are neighbours.
std::vector<float> interleave_halves(const std::vector<float>& rows, int head_dim,
                                     std::size_t width) {
  std::vector<float> permuted(rows.size());
  for (std::size_t row = 0; row < rows.size() / width; ++row) {
    const std::size_t in_head = row % head_dim;
    const std::size_t half = static_cast<std::size_t>(head_dim) / 2;
    const std::size_t target = row - in_head + (in_head % half) * 2 + in_head / half;
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                permuted.begin() + static_cast<std::ptrdiff_t>(target * width));
  }
  return permuted;
}

}  // namespace

HfSource open_hf_source(const std::string& folder) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  PAGODA_CHECK(checkpoint.ok(), checkpoint.status().message());
  Result<ModelConfig> config = read_model_config(*checkpoint);
  PAGODA_CHECK(config.ok(), config.status().message());
  return {*std::move(checkpoint), *std::move(config)};
}

GgufWriter to_gguf(const HfSource& source, double rope_theta, WeightFormat format,
                   std::optional<WeightFormat> of_values) {
  GgufWriter writer;
  set_keys(source.config, rope_theta, writer);
  for (const std::string& name : source.checkpoint.names()) {
    const HostTensor tensor = *source.checkpoint.tensor(name);
    std::vector<float> values = values_of(tensor);
    const bool is_q_or_k =
        name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    const auto width = static_cast<std::size_t>(tensor.shape.rank() == 2 ? tensor.shape[1] : 1);
    if (is_q_or_k && gguf_architecture(source.config) == "llama") {
      values = interleave_halves(values, source.config.layers.front().attention().head_dim, width);
    }
    const bool has_own =
        of_values && (name.ends_with("v_proj.weight") || name.ends_with("down_proj.weight"));
    WeightFormat stored = has_own ? *of_values : format;
    if (tensor.shape.rank() == 1) stored = WeightFormat::kF32;
    // Rows that are not whole blocks are stored in F16, as by converters.
    if (width % traits_of(stored).block_size != 0) stored = WeightFormat::kF16;
    writer.add_tensor(gguf_name(name), tensor.shape, stored, values);
  }
  add_rope_divisors(source.config, rope_theta, writer);
  return writer;
}

}  // namespace pagoda::testing
