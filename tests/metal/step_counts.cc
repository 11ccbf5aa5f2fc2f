#include "tests/metal/step_counts.h"

#include <fmt/format.h>

#include <ctime>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/assemble.h"
#include "engine/engine_core.h"
#include "tests/metal/stand_in.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wrapped_runner.h"

namespace pagoda {
namespace {

namespace stand_in = mlx::stand_in;

constexpr int kLayers = 28;
constexpr int kHidden = 256, kIntermediate = 512, kHeads = 4, kKvHeads = 2, kHeadDim = 64;
constexpr int kVocab = 1024;
constexpr int kExperts = 4;
constexpr int kWarmSteps = 8;
constexpr int kSteps = 64;

enum class Mlps { kDense, kExperts, kBoth };  // of a qwen3, a qwen3_moe, and a gemma4_text

struct StepModel {
  int num_layers = 0;
  Mlps mlps = Mlps::kDense;
};

// Writes the config of a model, except the keys that all have.
std::string own_keys(Mlps mlps) {
  constexpr const char* kRope = R"("rope_theta": 1000000.0)";
  if (mlps == Mlps::kDense) return fmt::format(R"("model_type": "qwen3", {})", kRope);
  const std::string experts =
      fmt::format(R"("num_experts": {}, "moe_intermediate_size": {})", kExperts, kIntermediate);
  if (mlps == Mlps::kExperts) {
    return fmt::format(R"("model_type": "qwen3_moe", "num_experts_per_tok": 2, {}, {})", experts,
                       kRope);
  }
  return fmt::format(
      R"("model_type": "gemma4_text", "enable_moe_block": true, "top_k_experts": 2, {},
      "hidden_size_per_layer_input": 0, "global_head_dim": {})",
      experts, kHeadDim);
}

using AddTensor = std::function<void(const std::string& name, const Shape& shape)>;

void add_mlp(const std::string& prefix, const AddTensor& add) {
  add(prefix + "gate_proj.weight", {kIntermediate, kHidden});
  add(prefix + "up_proj.weight", {kIntermediate, kHidden});
  add(prefix + "down_proj.weight", {kHidden, kIntermediate});
}

// Adds what a layer has behind its attention.
void add_mlps(Mlps mlps, const std::string& layer, const AddTensor& add) {
  if (mlps != Mlps::kExperts) add_mlp(layer + "mlp.", add);
  if (mlps == Mlps::kExperts) {
    add(layer + "mlp.gate.weight", {kExperts, kHidden});
    for (int expert = 0; expert < kExperts; ++expert)
      add_mlp(fmt::format("{}mlp.experts.{}.", layer, expert), add);
  }
  if (mlps != Mlps::kBoth) return;
  for (const char* norm :
       {"pre_feedforward_layernorm", "pre_feedforward_layernorm_2", "post_feedforward_layernorm",
        "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"})
    add(layer + norm + ".weight", {kHidden});
  add(layer + "router.proj.weight", {kExperts, kHidden});
  add(layer + "router.scale", {kHidden});
  add(layer + "router.per_expert_scale", {kExperts});
  add(layer + "experts.gate_up_proj", {kExperts, 2 * kIntermediate, kHidden});
  add(layer + "experts.down_proj", {kExperts, kHidden, kIntermediate});
}

// Writes a random model with matrices in bfloat16.
void write_checkpoint(const testing::TemporaryFolder& folder, const StepModel& model) {
  std::ofstream(folder / "config.json") << fmt::format(
      R"({{{}, "vocab_size": {}, "hidden_size": {}, "intermediate_size": {},
      "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
      "max_position_embeddings": 1024, "rms_norm_eps": 1e-6,
      "tie_word_embeddings": true, "eos_token_id": 1}})",
      own_keys(model.mlps), kVocab, kHidden, kIntermediate, model.num_layers, kHeads, kKvHeads,
      kHeadDim);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.06f);
  testing::SafetensorsWriter writer;
  const auto add = [&](const std::string& name, const Shape& shape) {
    std::vector<float> values(shape.num_elements());
    for (float& value : values) value = shape.rank() == 1 ? 1.0f : normal(random);
    writer.add(name, shape, WeightFormat::kBF16, values);
  };
  add("model.embed_tokens.weight", {kVocab, kHidden});
  add("model.norm.weight", {kHidden});
  for (int i = 0; i < model.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add(layer + "input_layernorm.weight", {kHidden});
    add(layer + "post_attention_layernorm.weight", {kHidden});
    add(layer + "self_attn.q_norm.weight", {kHeadDim});
    add(layer + "self_attn.k_norm.weight", {kHeadDim});
    add(layer + "self_attn.q_proj.weight", {kHeads * kHeadDim, kHidden});
    add(layer + "self_attn.k_proj.weight", {kKvHeads * kHeadDim, kHidden});
    add(layer + "self_attn.v_proj.weight", {kKvHeads * kHeadDim, kHidden});
    add(layer + "self_attn.o_proj.weight", {kHidden, kHeads * kHeadDim});
    add_mlps(model.mlps, layer, add);
  }
  writer.write(folder / "model.safetensors");
}

// The figures of a step: averages of counts, and medians of the host's times in microseconds.
struct StepFigures {
  double launches = 0, results = 0, dispatches = 0, barriers = 0, encoders = 0, command_buffers = 0;
  double building_us = 0;      // the graph alone
  double handing_over_us = 0;  // the graph, its evaluation by MLX, and the stand-in's recording
};

// Returns the CPU time of the calling thread, in microseconds. It excludes MLX's other threads, and
// the time of waiting for them.
double thread_us() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Records how long the host takes to submit a step.
class TimedRunner final : public WrappedRunner {
 public:
  TimedRunner(std::unique_ptr<StepRunner> runner, std::vector<double>& times)
      : WrappedRunner(std::move(runner)), times_(times) {}

  Status forward(const Plan& plan) override {
    const double begin = thread_us();
    Status status = WrappedRunner::forward(plan);
    times_.push_back(thread_us() - begin);
    return status;
  }

 private:
  std::vector<double>& times_;
};

// Returns the time of building a decode's graph. The graphs are not evaluated.
double time_building(RunnerParts& parts, int num_seqs) {
  HostBatch host;
  host.max_blocks = 1;
  for (int i = 0; i < num_seqs; ++i) {
    host.token_ids.push_back(0);
    host.positions.push_back(0);
    host.slot_mapping.push_back(-1);
    host.query_start.push_back(i);
    host.context_lens.push_back(1);
    host.first_slots.push_back(-1);
    host.block_tables.push_back(0);
    host.logits_rows.push_back(i);
  }
  host.query_start.push_back(num_seqs);
  host.num_decodes = num_seqs;
  const std::vector<KvView> views(parts.kv.views().begin(), parts.kv.views().end());
  std::vector<double> times;
  for (int i = 0; i < kSteps; ++i) {
    const double begin = thread_us();
    const StepBatch batch = upload(*parts.exec, host);
    const HiddenState hidden = parts.decoder.forward(*parts.exec, batch, parts.kv);
    const Tensor logits = parts.decoder.logits(*parts.exec, hidden, batch.logits_rows);
    times.push_back(thread_us() - begin);
    for (int layer = 0; layer < parts.kv.num_views(); ++layer) parts.kv.rebind(layer, views[layer]);
  }
  return median(times);
}

StepFigures differences(const stand_in::Counts& before, const stand_in::Counts& after) {
  const auto a_step = [](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(to - from) / kSteps;
  };
  return {.launches = a_step(before.launches, after.launches),
          .results = a_step(before.results, after.results),
          .dispatches = a_step(before.dispatches, after.dispatches),
          .barriers = a_step(before.barriers, after.barriers),
          .encoders = a_step(before.encoders, after.encoders),
          .command_buffers = a_step(before.command_buffers, after.command_buffers)};
}

void configure_stand_in(bool skips_kernels) {
  stand_in::Options options;
  options.is_traced = true;
  options.skips_kernels = skips_kernels;
  stand_in::configure(options);
}

StepFigures measure(const StepModel& model, int num_seqs, float temperature) {
  const testing::TemporaryFolder folder;
  write_checkpoint(folder, model);
  const Checkpoint checkpoint = Checkpoint::open(folder.path()).value();
  const ModelConfig config = read_model_config(checkpoint).value();
  std::vector<double> times;
  double building_us = 0;
  const EngineOptions options = {.backend = Backend::kMlx,
                                 .max_model_len = 512,
                                 .max_num_seqs = num_seqs,
                                 .num_kv_blocks = 32 * num_seqs,
                                 .kv_cache_layout = KvCacheLayout::kPaged,
                                 .enable_prefix_caching = false};
  configure_stand_in(/*skips_kernels=*/false);  // loading tests the matrix units
  EngineCore core(assemble(checkpoint, config, options, {}, [&](RunnerParts parts) {
                    building_us = time_building(parts, num_seqs);
                    return std::make_unique<TimedRunner>(make_model_runner(std::move(parts)),
                                                         times);
                  }).value());
  configure_stand_in(/*skips_kernels=*/true);
  for (int i = 0; i < num_seqs; ++i) {
    GenerationRequest request{.prompt_token_ids = {5, 6, 7, 8, 9, 10, 11, 12}};
    request.sampling.temperature = temperature;
    request.sampling.max_tokens = 256;
    request.sampling.ignore_eos = true;
    core.add(static_cast<RequestId>(i), std::move(request), [](const OutputEvent&) {});
  }
  for (int i = 0; i < kWarmSteps; ++i) PAGODA_CHECK(core.step().value(), "a step");
  const stand_in::Counts before = stand_in::counts();
  times.clear();
  for (int i = 0; i < kSteps; ++i) PAGODA_CHECK(core.step().value(), "a step");
  StepFigures figures = differences(before, stand_in::counts());
  figures.building_us = building_us;
  figures.handing_over_us = median(times);
  PAGODA_CHECK(core.cancel_all().ok(), "an end");
  return figures;
}

}  // namespace

namespace {

void print_step(const StepModel& model, int num_seqs, float temperature) {
  const StepFigures whole = measure(model, num_seqs, temperature);
  const StepFigures half = measure({model.num_layers / 2, model.mlps}, num_seqs, temperature);
  const double half_of_layers = model.num_layers / 2.0;
  constexpr std::string_view kTitles[] = {"", "experts, ", "both, "};
  fmt::print(
      "{:<26}{:>5.0f}{:>7.0f}{:>9.2f}{:>12.1f}{:>9.2f}{:>10.1f}{:>10.2f}{:>9.2f}{:>10.0f}{:>13.0f}"
      "\n",
      fmt::format("{}{} seqs, {}", kTitles[static_cast<int>(model.mlps)], num_seqs,
                  temperature > 0 ? "drawn" : "greedy"),
      whole.launches, whole.results, (whole.results - half.results) / half_of_layers,
      whole.dispatches, (whole.dispatches - half.dispatches) / half_of_layers, whole.barriers,
      whole.encoders, whole.command_buffers, whole.building_us, whole.handing_over_us);
}

}  // namespace

void print_step_counts() {
  fmt::print(
      "\nA decode step of a qwen3 of {} layers: hidden {}, {} heads on {} of {}, vocabulary {}; "
      "and "
      "of one with {} experts, and of a gemma4_text with both\n"
      "Nodes are arrays that ops make; a layer's are the difference to a model of half the "
      "layers.\n"
      "Processor time of the engine's thread: of building the graph, and of that, MLX's evaluation "
      "and "
      "the\nstand-in's recording together; medians of {} steps. No kernel runs.\n"
      "{:<26}{:>5}{:>7}{:>9}{:>12}{:>9}{:>10}{:>10}{:>9}{:>10}{:>13}\n",
      kLayers, kHidden, kHeads, kKvHeads, kHeadDim, kVocab, kExperts, kSteps, "", "ops", "nodes",
      "a layer", "dispatches", "a layer", "barriers", "encoders", "buffers", "built us",
      "handed over");
  for (const int num_seqs : {1, 8}) {
    for (const float temperature : {0.0f, 1.0f})
      print_step({.num_layers = kLayers}, num_seqs, temperature);
    for (const Mlps mlps : {Mlps::kExperts, Mlps::kBoth})
      print_step({.num_layers = kLayers, .mlps = mlps}, num_seqs, 0);
  }
}

}  // namespace pagoda
