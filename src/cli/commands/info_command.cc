// pagoda info: what a checkpoint is, and what this binary can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include "backend/backend.h"
#include "backend/cpu/cpu_isa.h"
#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/kv_format_flags.h"
#include "core/machine.h"
#include "core/version.h"
#include "hub/model_store.h"
#include "model/model_config.h"
#include "ops/attention/attention.h"
#include "ops/attention/cpu/attention_path.h"
#include "ops/op_cases.h"
#include "weights/checkpoint.h"

namespace pagoda {

namespace {

struct InfoFlags {
  std::string model;
  std::string device = "auto";
  bool ops = false;
  std::string kv_cache_dtype = "auto";
};

// Returns the backends that the user asks about: all, or one that must be available. `about`: the
// description of that backend's device.
Result<std::vector<Backend>> asked_backends(const std::string& device, std::string& about) {
  PAGODA_ASSIGN_OR_RETURN(const std::optional<Backend> backend, parse_device(device));
  if (!backend) return std::vector<Backend>(kBackends.begin(), kBackends.end());
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<Exec> exec, make_exec({.backend = *backend}));
  about = exec->describe();
  return std::vector<Backend>{*backend};
}

Status print_build(const std::vector<Backend>& backends) {
  PAGODA_ASSIGN_OR_RETURN(const CpuIsa isa, choose_cpu_isa());
  std::printf("pagoda %s, %d threads by default, %.1f GB of memory free\n",
              version_and_commit().c_str(), default_num_threads(),
              static_cast<double>(available_memory_bytes()) / 1e9);
  std::printf("devices:");
  for (const Backend backend : backends) {
    if (backend_is_here(backend)) std::printf(" %s", std::string(backend_name(backend)).c_str());
  }
  std::printf("\ncpu instruction set: %s; this machine has",
              std::string(cpu_isa_name(isa)).c_str());
  for (const CpuIsa each : supported_cpu_isas())
    std::printf(" %s", std::string(cpu_isa_name(each)).c_str());
  std::printf("\n");
  if (amx_state() == AmxState::kForbidden)
    std::printf(
        "amx: this machine has its tiles, but the system does not let this process use them\n");
  return ok_status();
}

// Prints a line of the table, without spaces at its end.
void print_row(std::size_t first_width, const std::string& first,
               const std::vector<std::string_view>& cells) {
  std::string line = fmt::format("{:<{}}", first, first_width);
  for (const std::string_view cell : cells) line += fmt::format("  {:<9}", cell);
  line.erase(line.find_last_not_of(' ') + 1);
  std::printf("%s\n", line.c_str());
}

std::vector<std::string_view> names_of(const std::vector<Backend>& backends) {
  std::vector<std::string_view> names;
  for (const Backend backend : backends) names.push_back(backend_name(backend));
  return names;
}

void print_ops(const std::vector<Backend>& backends) {
  const std::vector<ListedOp> ops = listed_ops();
  std::size_t width = 0;
  for (const ListedOp& op : ops) width = std::max(width, op.op.size());
  print_row(width, "op", names_of(backends));
  for (const ListedOp& op : ops) {
    std::vector<std::string_view> cells;
    for (const Backend backend : backends)
      cells.push_back(backend_is_built(backend) ? "yes" : "absent");
    print_row(width, op.op, cells);
  }
}

// Returns the KV cache formats to show: the one asked for, or the usual ones.
std::vector<KvFormats> asked_formats(const std::string& dtype) {
  if (const auto formats = parse_kv_formats(dtype).value()) return {*formats};
  std::vector<KvFormats> all;
  for (const KvFormat format : kKvFormats) all.push_back({format, format});
  all.insert(all.end() - 1, {KvFormat::kInt8, KvFormat::kInt4});
  return all;
}

// Prints which path attention takes, one line per format of the KV cache.
void print_attention(const std::vector<Backend>& backends, const std::vector<KvFormats>& formats,
                     std::int64_t head_dim, std::string_view heads) {
  std::printf("\nattention by the KV cache's format, heads of %s\n", std::string(heads).c_str());
  std::size_t width = 0;
  for (const KvFormats& each : formats) width = std::max(width, kv_formats_name(each).size());
  print_row(width, "cache", names_of(backends));
  for (const KvFormats& each : formats) {
    std::vector<std::string_view> cells;
    for (const Backend backend : backends) {
      cells.push_back(backend_is_built(backend)
                          ? attention_path_name(attention_path(backend, each, head_dim))
                          : "absent");
    }
    print_row(width, kv_formats_name(each), cells);
  }
}

// Prints a line for each kind of mixture that layers have.
void print_experts(const ModelConfig& config) {
  std::map<std::string, int> mixtures;
  for (const LayerConfig& layer : config.layers) {
    const ExpertsConfig* const experts = layer.experts();
    if (experts == nullptr) continue;
    ++mixtures[fmt::format("{} of {}{}", experts->rule.num_chosen, experts->num_experts,
                           experts->shared_intermediate_size > 0 ? " and a shared one" : "")];
  }
  for (const auto& [experts, layers] : mixtures)
    std::printf("experts          %s on %d layers\n", experts.c_str(), layers);
}

void print_config(const ModelConfig& config) {
  std::printf("architecture     %s, %d layers\n", config.architecture.c_str(), config.num_layers());
  std::set<int> widths;
  std::map<std::tuple<int, int, int>, int> attentions;
  for (const LayerConfig& layer : config.layers) {
    widths.insert(layer.mlp_width());
    const AttentionConfig& heads = layer.attention();
    ++attentions[{heads.num_heads, heads.head_dim, heads.num_kv_heads}];
  }
  std::printf("hidden           %d, intermediate %s\n", config.hidden_size,
              fmt::format("{}", fmt::join(widths, " and ")).c_str());
  print_experts(config);
  for (const auto& [heads, layers] : attentions) {
    const auto& [num_heads, head_dim, num_kv_heads] = heads;
    const std::string where = attentions.size() == 1 ? "" : fmt::format(" on {} layers", layers);
    std::printf("attention        %d heads of %d, %d kv heads%s\n", num_heads, head_dim,
                num_kv_heads, where.c_str());
  }
  std::printf("vocabulary       %d%s\n", config.vocab_size,
              config.tie_word_embeddings ? ", tied"
              : config.has_head          ? ""
                                         : ", no head");
  if (config.has_score_head) std::printf("head             scores of pairs of texts\n");
  std::printf("context          %d tokens\n", config.max_position_embeddings);
  std::map<int, int> windows;
  for (const LayerConfig& each : config.layers) ++windows[each.attention().window];
  for (const auto& [window, layers] : windows) {
    if (window > 0) std::printf("window           %d tokens on %d layers\n", window, layers);
  }
}

// Prints what a checkpoint is, and returns it.
Result<ModelConfig> print_checkpoint(const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path path, resolve_model(name));
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(path.string()));
  std::printf("%s\n", path.c_str());
  std::int64_t num_parameters = 0;
  std::map<std::string, int> formats;
  for (const std::string& tensor_name : checkpoint.names()) {
    const Result<HostTensor> tensor = checkpoint.tensor(tensor_name);
    ++formats[tensor.ok() ? format_name(*tensor) : "not readable"];
    if (tensor.ok()) num_parameters += tensor->shape.num_elements();
  }
  // A config that is not supported is an error behind what is known of the file.
  Result<ModelConfig> config = read_model_config(checkpoint);
  const std::int64_t num_idle = config.ok() ? config->num_idle_parameters() : 0;
  const std::string of_token =
      num_idle == 0 ? ""
                    : fmt::format(", {:.1f} million of them used for a token",
                                  static_cast<double>(num_parameters - num_idle) / 1e6);
  std::printf("parameters       %.1f million in %.1f MB%s\n",
              static_cast<double>(num_parameters) / 1e6,
              static_cast<double>(checkpoint.file_bytes()) / 1e6, of_token.c_str());
  std::printf("tensors         ");
  const char* separator = " ";
  for (const auto& [format, count] : formats) {
    std::printf("%s%d %s", separator, count, format.c_str());
    separator = "; ";
  }
  std::printf("\n");
  PAGODA_RETURN_IF_ERROR(config.status());
  print_config(*config);
  return config;
}

Status info(const InfoFlags& flags) {
  std::string about;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Backend> backends, asked_backends(flags.device, about));
  std::set<int> head_dims;  // the model's
  if (!flags.model.empty()) {
    PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, print_checkpoint(flags.model));
    for (const LayerConfig& layer : config.layers) head_dims.insert(layer.attention().head_dim);
  } else {
    PAGODA_RETURN_IF_ERROR(print_build(backends));
    if (!about.empty()) std::printf("%s\n", about.c_str());
  }
  if (!flags.ops) return ok_status();
  print_ops(backends);
  const std::vector<KvFormats> formats = asked_formats(flags.kv_cache_dtype);
  for (const int head_dim : head_dims)
    print_attention(backends, formats, head_dim, std::to_string(head_dim));
  if (head_dims.empty()) {
    print_attention(backends, formats, cpu::kMostCodedDims,
                    fmt::format("at most {}", cpu::kMostCodedDims));
  }
  return ok_status();
}

}  // namespace

void add_info_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App& command = *app.add_subcommand("info", "What a model is, or what this binary can do");
  command
      .add_option("MODEL", flags->model,
                  "A GGUF file, a Hugging Face folder, or a name that `pagoda pull` knows")
      ->type_name(kModelType);
  command.add_option("--device", flags->device, "Only this one; an error where it is not there")
      ->check(one_of({"auto", "reference", "cpu", "mlx", "cuda"}))
      ->capture_default_str();
  command.add_flag("--ops", flags->ops,
                   "Print which op runs on which backend, and how attention reads the KV cache");
  command
      .add_option("--kv-cache-dtype", flags->kv_cache_dtype,
                  "With --ops: only this format of the KV cache; auto: those that are usual")
      ->check(kv_formats_validator())
      ->capture_default_str();
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = info(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
