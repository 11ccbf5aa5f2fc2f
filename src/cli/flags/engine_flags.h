// The flags of EngineOptions, each declared once for every subcommand that loads a model.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/kv_format_flags.h"
#include "core/status.h"
#include "serving/served_model.h"

namespace CLI {
class App;
}

namespace pagoda {

struct EngineFlags {
  std::string model;
  std::string device = "auto";
  std::string kv_cache_layout = "auto";
  KvFormatFlags kv_formats;
  EngineOptions engine;
  std::string chat_template;
  std::string tool_call_parser = "auto";
  std::string generation_config = "auto";
};

// Adds MODEL, --device, --threads, --int8-activations, --seed: what every subcommand that loads a
// model takes.
void add_model_flags(CLI::App& command, EngineFlags& flags);
// Adds --max-model-len, --block-size, the KV cache's flags and the batch's, which all of them take
// besides.
void add_batching_flags(CLI::App& command, EngineFlags& flags);

// Adds --generation-config, which those take besides whose answers are sampled.
void add_sampling_flags(CLI::App& command, EngineFlags& flags);

// Resolves the model's name and the flags' words; loads, with a progress bar on a terminal. A model
// without a tokenizer is refused unless token ids will do.
enum class Text { kNeeded, kTokenIdsWillDo };
Result<std::unique_ptr<ServedModel>> load(const EngineFlags& flags, Text text = Text::kNeeded);

// Returns the names under which the API knows the model: its file's first, then the one that was
// typed.
std::vector<std::string> names_in_api(const EngineFlags& flags, const ServedModel& model);

// Returns the backend of a name; "auto" is absent.
Result<std::optional<Backend>> parse_device(const std::string& name);

}  // namespace pagoda
