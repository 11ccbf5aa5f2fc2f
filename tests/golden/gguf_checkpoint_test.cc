// The tiny checkpoints again, rewritten as GGUF files of every format that is read: the same golden
// outputs from unquantised files, and the backends' agreement with the reference on quantised ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

#include "quant/q4_k.h"
#include "tests/golden/golden_case.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wide_checkpoint.h"
#include "weights/checkpoint.h"

namespace pagoda::golden {
namespace {

using testing::GgufWriter;
using testing::TemporaryFolder;

const std::string kData = std::string(PAGODA_SOURCE_DIR) + "/tests/golden/data/";

struct Source {
  Checkpoint checkpoint;
  ModelConfig config;
};

Source open_folder(const std::string& folder) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  PAGODA_CHECK(checkpoint.ok(), checkpoint.status().message());
  Result<ModelConfig> config = read_model_config(*checkpoint);
  PAGODA_CHECK(config.ok(), config.status().message());
  return {*std::move(checkpoint), *std::move(config)};
}

Source open_source(const std::string& model) {
  return open_folder(kData + model);
}

// GGUF's llama architecture stands for Mistral's models too.
std::string gguf_architecture(const ModelConfig& config) {
  return config.architecture == "mistral" ? "llama" : config.architecture;
}

void set_keys(const ModelConfig& config, double rope_theta, GgufWriter& writer) {
  const std::string arch = gguf_architecture(config);
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  writer.set("general.architecture", arch)
      .set(arch + ".block_count", u32(config.num_layers))
      .set(arch + ".context_length", u32(config.max_position_embeddings))
      .set(arch + ".embedding_length", u32(config.hidden_size))
      .set(arch + ".feed_forward_length", u32(config.intermediate_size))
      .set(arch + ".attention.head_count", u32(config.num_heads))
      .set(arch + ".attention.head_count_kv", u32(config.num_kv_heads))
      .set(arch + ".attention.key_length", u32(config.head_dim))
      .set(arch + ".attention.value_length", u32(config.head_dim))
      .set(arch + ".rope.dimension_count", u32(config.head_dim))
      .set(arch + ".rope.freq_base", static_cast<float>(rope_theta))
      .set(arch + ".attention.layer_norm_rms_epsilon", config.rms_norm_eps)
      .set("tokenizer.ggml.eos_token_id", u32(config.eos_token_ids.at(0)));
  if (config.layer_windows[0] > 0)
    writer.set(arch + ".attention.sliding_window", u32(config.layer_windows[0]));
}

// Llama 3's scaling comes as a divisor for each pair's frequency.
void add_rope_divisors(const ModelConfig& config, double rope_theta, GgufWriter& writer) {
  std::vector<float> divisors;
  bool scaled = false;
  for (std::size_t i = 0; i < config.rope_inv_freq.size(); ++i) {
    const double unscaled = std::pow(rope_theta, -2.0 * static_cast<double>(i) / config.head_dim);
    divisors.push_back(static_cast<float>(unscaled / config.rope_inv_freq[i]));
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

// The llama converter's order of q's and k's rows: a head's two halves interleaved, so that
// rotations pair neighbours.
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

GgufWriter to_gguf(const Source& source, double rope_theta, WeightFormat format) {
  GgufWriter writer;
  set_keys(source.config, rope_theta, writer);
  for (const std::string& name : source.checkpoint.names()) {
    const HostTensor tensor = *source.checkpoint.tensor(name);
    std::vector<float> values = values_of(tensor);
    const bool is_q_or_k =
        name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    const auto width = static_cast<std::size_t>(tensor.shape.rank() == 2 ? tensor.shape[1] : 1);
    if (is_q_or_k && gguf_architecture(source.config) == "llama") {
      values = interleave_halves(values, source.config.head_dim, width);
    }
    WeightFormat stored = tensor.shape.rank() == 1 ? WeightFormat::kF32 : format;
    // As converters do.
    if (width % traits_of(stored).block_size != 0) stored = WeightFormat::kF16;
    writer.add_tensor(gguf_name(name), tensor.shape, stored, values);
  }
  add_rope_divisors(source.config, rope_theta, writer);
  return writer;
}

const std::map<std::string, double> kRopeThetas = {{"tiny-llama", 1e4},
                                                   {"tiny-llama31", 5e5},
                                                   {"tiny-qwen2", 1e4},
                                                   {"tiny-qwen3", 1e4},
                                                   {"tiny-mistral", 1e4}};

std::unique_ptr<Engine> open_file(const std::string& path, Backend backend) {
  return open_engine(path, {.backend = backend, .max_model_len = 512, .max_num_seqs = 4});
}

TEST(GgufCheckpoint, UnquantisedFilesGiveTheGoldenOutputs) {
  const TemporaryFolder folder;
  for (const auto& [model, rope_theta] : kRopeThetas) {
    const std::string path = folder / (model + ".gguf");
    to_gguf(open_source(model), rope_theta, WeightFormat::kF32).write(path);
    const std::unique_ptr<Engine> engine = open_file(path, Backend::kReference);
    ASSERT_NE(engine, nullptr) << model;
    Closeness closeness;
    const std::vector<GoldenCase> cases = *read_golden_cases(kData + model + "/golden.json");
    for (const GoldenCase& golden : cases) {
      EXPECT_EQ(compare(*engine, golden, 0.01f, closeness), "") << model;
    }
    EXPECT_LE(closeness.mean(), 0.001) << model;
    EXPECT_LE(closeness.largest, 0.005) << model;
  }
}

TEST(GgufCheckpoint, SplitSetsAreTheirWhole) {
  const TemporaryFolder folder;
  const GgufWriter writer = to_gguf(open_source("tiny-llama"), 1e4, WeightFormat::kQ8_0);
  writer.write(folder / "whole.gguf");
  const GenerationRequest request = {
      .prompt_token_ids = {5, 6, 7, 8},
      .sampling = {.temperature = 0, .max_tokens = 8, .ignore_eos = true},
      .hash_logits = true};
  const WholeAnswer whole = run_to_end(*open_file(folder / "whole.gguf", Backend::kCpu), request);
  const WholeAnswer parts =
      run_to_end(*open_file(writer.write_split(folder / "part", 3), Backend::kCpu), request);
  EXPECT_EQ(whole.logits_hash, parts.logits_hash);
  EXPECT_EQ(whole.token_ids, parts.token_ids);
}

// What the reference computes from the file, as a golden case.
GoldenCase reference_case(Engine& reference, const std::vector<int>& prompt_ids) {
  constexpr int kSteps = 12;
  const WholeAnswer answer = run_to_end(reference, {.prompt_token_ids = prompt_ids,
                                                    .sampling = {.temperature = 0,
                                                                 .max_tokens = kSteps,
                                                                 .ignore_eos = true,
                                                                 .logprobs = 5,
                                                                 .prompt_logprobs = 0}});
  GoldenCase golden = {
      .name = "reference", .prompt_ids = prompt_ids, .greedy_ids = answer.token_ids};
  for (const TokenLogprobs& step : answer.logprobs) {
    golden.top1_margin.push_back(step.top[0].logprob - step.top[1].logprob);
    std::vector<std::pair<int, float>>& listed = golden.top_logprobs.emplace_back();
    for (const TokenLogprob& entry : step.top) listed.emplace_back(entry.token_id, entry.logprob);
  }
  for (const auto& entry : answer.prompt_logprobs) {
    golden.prompt_logprobs.push_back(entry ? std::optional(entry->chosen.logprob) : std::nullopt);
  }
  return golden;
}

// The backends' answers from the source in that format, beside the reference's.
void expect_backends_agree(const Source& source, double rope_theta, WeightFormat format,
                           const std::vector<int>& prompt_ids) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  to_gguf(source, rope_theta, format).write(path);
  const std::unique_ptr<Engine> reference = open_file(path, Backend::kReference);
  const GoldenCase golden = reference_case(*reference, prompt_ids);
  for (const Backend backend : built_backends()) {
    const std::unique_ptr<Engine> engine = open_file(path, backend);
    ASSERT_NE(engine, nullptr);
    Closeness closeness;
    const bool is_mlx = backend == Backend::kMlx;
    const std::string what = fmt::format("{} in {} on {}", source.config.architecture,
                                         traits_of(format).name, backend_name(backend));
    EXPECT_EQ(compare(*engine, golden, is_mlx ? 0.3f : 0.2f, closeness), "") << what;
    EXPECT_LE(closeness.mean(), is_mlx ? 0.08 : 0.04) << what;
    EXPECT_LE(closeness.largest, is_mlx ? 1.0 : 0.5) << what;
  }
}

TEST(GgufCheckpoint, EveryFormatIsReadAlikeByAllBackends) {
  const TemporaryFolder wide;
  testing::make_wide_checkpoint(wide);
  for (const WeightFormat format : kWeightFormats) {
    const std::vector<GoldenCase> cases = *read_golden_cases(kData + "tiny-llama/golden.json");
    if (traits_of(format).block_size == BlockQ4_K::kValues) {
      expect_backends_agree(open_folder(wide.path()), 2e4, format, cases[3].prompt_ids);
      continue;
    }
    for (const std::string model : {"tiny-llama", "tiny-qwen2", "tiny-qwen3"}) {
      expect_backends_agree(open_source(model), 1e4, format, cases[3].prompt_ids);
    }
  }
}

}  // namespace
}  // namespace pagoda::golden
