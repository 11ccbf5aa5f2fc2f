#include "cli/flags/engine_flags.h"

#include <CLI/CLI.hpp>

#include "cli/flags/flag_values.h"
#include "core/progress_bar.h"
#include "core/utf8.h"
#include "hub/model_store.h"

namespace pagoda {

void add_model_flags(CLI::App& command, EngineFlags& flags) {
  command
      .add_option("MODEL", flags.model,
                  "A GGUF file, a Hugging Face folder, or a name that `pagoda pull` knows")
      ->type_name(kModelType)
      ->required();
  command.add_option("--device", flags.device, "Where the model runs")
      ->check(one_of({"auto", "reference", "cpu", "mlx", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--threads", flags.engine.num_threads,
                  "Worker threads; 0: the physical cores that the cgroup grants")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  command.add_flag("--int8-activations", flags.engine.int8_activations,
                   "Round the inputs of 4- and 8-bit products to bytes: faster, less exact; cpu");
  command
      .add_option("--seed", flags.engine.seed, "Of the seeds drawn for requests that bring none")
      ->transform(whole_number<std::uint64_t>())
      ->capture_default_str();
}

void add_fetch_flag(CLI::App& command, EngineFlags& flags) {
  flags.fetching = Fetching::kAsk;
  command.add_flag_callback(
      "--yes", [&flags] { flags.fetching = Fetching::kDone; },
      "Fetch a model that is not on this machine, without asking");
}

void add_sampling_flags(CLI::App& command, EngineFlags& flags) {
  command
      .add_option("--generation-config", flags.generation_config,
                  "Default sampling: the checkpoint's, or none of it")
      ->check(one_of({"auto", "none"}))
      ->capture_default_str();
}

void add_batching_flags(CLI::App& command, EngineFlags& flags) {
  EngineOptions& engine = flags.engine;
  command
      .add_option("--max-model-len", engine.max_model_len,
                  "Tokens of prompt and answer together; 0: the checkpoint's")
      ->transform(whole_number(0, 1 << 24));
  command
      .add_option("--max-num-seqs", engine.max_num_seqs,
                  "Sequences computed at once, one a token of a step at most; 0: 64")
      ->transform(whole_number(0, 65536));
  command
      .add_option("--max-num-batched-tokens", engine.max_num_batched_tokens,
                  "Tokens of one step; 0: 512 on cpu, or 128 a thread up to 2048, 2048 on mlx, or "
                  "a token a sequence")
      ->transform(whole_number(0, 1 << 20));
  command.add_option("--block-size", engine.block_size, "Tokens of a KV cache block")
      ->transform(whole_number(1, 1 << 16))
      ->capture_default_str();
  command
      .add_option("--kv-cache-memory-bytes", engine.kv_cache_memory_bytes,
                  "Bytes of the KV cache; 0: all contexts, in half of what is free and 4 GiB")
      ->transform(whole_number<std::int64_t>(0));
  command
      .add_option("--num-kv-blocks,--num-gpu-blocks-override", engine.num_kv_blocks,
                  "Blocks of the paged KV cache; 0: by memory")
      ->transform(whole_number(0, 1 << 30));
  command
      .add_option("--kv-cache-layout", flags.kv_cache_layout, "Blocks of a page, or one a sequence")
      ->check(one_of({"auto", "paged", "contiguous"}))
      ->capture_default_str();
  command.add_flag("--enable-prefix-caching,!--no-enable-prefix-caching",
                   engine.enable_prefix_caching,
                   "Keep the KV blocks of prompts and answers for requests that begin alike");
  command
      .add_option("--prefix-cache-dir", engine.prefix_cache_dir,
                  "Where to make a folder for blocks that leave the prefix cache, so that they "
                  "outlive a restart; its files tell of prompts")
      ->type_name(kPathType);
  command
      .add_option("--prefix-cache-dir-bytes", engine.prefix_cache_dir_bytes,
                  "Bytes of the files there; the ones used least recently go")
      ->transform(whole_number<std::int64_t>(1 << 20))
      ->capture_default_str();
  add_kv_format_flags(command, flags.kv_formats);
}

Result<std::optional<Backend>> parse_device(const std::string& name) {
  if (name == "auto") return std::optional<Backend>();
  for (const Backend backend : kBackends) {
    if (backend_name(backend) == name) return std::optional<Backend>(backend);
  }
  return invalid_argument("[device] {}: expected auto, reference, cpu, mlx or cuda", name);
}

namespace {

KvCacheLayout parse_layout(const std::string& name) {
  if (name == "paged") return KvCacheLayout::kPaged;
  if (name == "contiguous") return KvCacheLayout::kContiguous;
  return KvCacheLayout::kAuto;
}

}  // namespace

Result<std::unique_ptr<ServedModel>> load(const EngineFlags& flags, Text text) {
  ServedModelOptions options = {.engine = flags.engine,
                                .use_generation_config = flags.generation_config != "none",
                                .needs_tokenizer = text == Text::kNeeded};
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path path,
                          resolve_or_fetch(flags.model, flags.fetching));
  options.path = path.string();
  if (is_commit_id(path.filename().string())) options.name = typed_name(flags.model);
  if (is_default_model(options.path)) {
    options.card_defaults = {.temperature = DefaultModel::kTemperature,
                             .top_p = DefaultModel::kTopP};
  }
  PAGODA_ASSIGN_OR_RETURN(options.engine.backend, parse_device(flags.device));
  options.engine.kv_cache_layout = parse_layout(flags.kv_cache_layout);
  PAGODA_RETURN_IF_ERROR(apply_kv_format_flags(flags.kv_formats, options.engine));
  if (!flags.chat_template.empty()) options.chat_template_file = flags.chat_template;
  if (flags.tool_call_parser != "auto") {
    PAGODA_ASSIGN_OR_RETURN(options.tool_syntax, tool_syntax_of(flags.tool_call_parser));
  }
  ProgressBar bar("loading");
  options.on_progress = [&bar](double share) { bar.show(share); };
  return load_served_model(options);
}

std::vector<std::string> names_in_api(const EngineFlags& flags, const ServedModel& model) {
  std::vector<std::string> names = {model.name};
  const std::string typed = as_utf8(typed_name(flags.model));
  if (typed != model.name) names.push_back(typed);
  return names;
}

}  // namespace pagoda
