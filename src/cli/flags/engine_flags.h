// The flags of EngineOptions, each declared once for every subcommand that loads a model.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/kv_format_flags.h"
#include "cli/flags/model_fetching.h"
#include "core/status.h"
#include "serving/served_model.h"

namespace CLI {
class App;
}

namespace pagoda {

struct EngineFlags {
  std::string model;
  Fetching fetching = Fetching::kNever;
  std::string device = "auto";
  std::string kv_cache_layout = "auto";
  KvFormatFlags kv_formats;
  EngineOptions engine;
  std::string chat_template;
  std::string tool_call_parser = "auto";
  std::string generation_config = "auto";
};

// Adds MODEL, --device, --threads, --int8-activations, --seed: the flags of every subcommand that
// loads a model.
void add_model_flags(CLI::App& command, EngineFlags& flags);
// Adds --max-model-len, --block-size, the KV cache's flags and the batch's flags, for the same
// subcommands.
void add_batching_flags(CLI::App& command, EngineFlags& flags);

// Adds --yes, for the subcommands that may fetch their model; without it they ask on a terminal.
void add_fetch_flag(CLI::App& command, EngineFlags& flags);

// Adds --generation-config, for the subcommands that sample answers.
void add_sampling_flags(CLI::App& command, EngineFlags& flags);

// Resolves the model's name (resolve_or_fetch()) and the flags' values and loads the model, with a
// progress bar on a terminal. A model without a tokenizer is refused, except with kTokenIdsWillDo.
enum class Text { kNeeded, kTokenIdsWillDo };
Result<std::unique_ptr<ServedModel>> load(const EngineFlags& flags, Text text = Text::kNeeded);

// Returns the model's names in the API: first the name from its file, then the name that was typed.
std::vector<std::string> names_in_api(const EngineFlags& flags, const ServedModel& model);

// Returns the backend of this name; absent for "auto".
Result<std::optional<Backend>> parse_device(const std::string& name);

}  // namespace pagoda
