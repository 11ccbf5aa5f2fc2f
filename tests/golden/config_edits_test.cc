// Edits of the tiny checkpoints' config.json: each key removed, set to null or changed, and each
// key added that transformers reads in some family. An edited config must give transformers'
// result, or be refused by the key's name. A key that changes transformers' result is never
// ignored.
//
// config_edits.json has transformers' results (tools/make_config_edits.py). Every edit is read
// here. Of the edits that change what is read, a sample that changes by the day is also computed.
// PAGODA_CONFIG_EDITS=all computes all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "engine/create_engine.h"
#include "model/hf/hf_config.h"
#include "tests/golden/golden_case.h"
#include "tests/support/log_capture.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temporary_folder.h"

namespace pagoda::golden {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

constexpr std::size_t kSampleSize = 60;
constexpr double kLargestDifference = 0.005;  // the reference's bound for tiny checkpoints
constexpr int kMaxModelLen = 48;              // fits the prompt; below LongRoPE's original context

struct Edit {
  std::string model;
  std::string pointer;                                         // "/text_config/rope_theta"
  json value;                                                  // "(absent)": the key is removed
  enum Verdict { kSame, kDiffers, kRefused } verdict = kSame;  // transformers' result
  std::vector<double> logprobs;  // of the prompt's last tokens; empty if transformers refuses

  std::string name() const { return fmt::format("{}: {} = {}", model, pointer, value.dump()); }
};

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const json& table() {
  static const json table = json::parse(read_text(kData + "config_edits.json"));
  return table;
}

json config_of(const std::string& model) {
  return json::parse(read_text(kData + model + "/config.json"));
}

std::string edited_config(const Edit& edit) {
  json config = config_of(edit.model);
  const json::json_pointer pointer(edit.pointer);
  if (edit.value == "(absent)") {
    config[pointer.parent_pointer()].erase(pointer.back());
  } else {
    config[pointer] = edit.value;
  }
  return config.dump();
}

// Adds the edits in rows of the table: [pointer, value] or [pointer, value, log-probabilities].
void add_edits(const std::string& model, const json& rows, Edit::Verdict verdict,
               const json& unedited, std::vector<Edit>& edits) {
  for (const json& row : rows) {
    const json& logprobs = row.size() > 2 ? row[2] : unedited;
    edits.push_back({.model = model,
                     .pointer = row[0],
                     .value = row[1],
                     .verdict = verdict,
                     .logprobs = verdict == Edit::kRefused ? std::vector<double>()
                                                           : logprobs.get<std::vector<double>>()});
  }
}

// Adds edits that give the text model keys that it lacks. Edits that the table does not list leave
// transformers' result as it is.
void add_added_edits(const std::string& model, const json& answers, std::vector<Edit>& edits) {
  const json config = config_of(model);
  const std::string parent = config.contains("text_config") ? "/text_config" : "";
  const json& text = config[json::json_pointer(parent)];
  std::vector<Edit> told;
  add_edits(model, answers["added_differs"], Edit::kDiffers, {}, told);
  add_edits(model, answers["added_refused"], Edit::kRefused, {}, told);
  for (const auto& [key, values] : table()["added"].items()) {
    if (text.contains(key)) continue;
    const std::string pointer = parent + "/" + key;
    for (const json& value : values) {
      // true equals 1 when JSON values are compared, so their spellings are compared.
      const auto listed = std::find_if(told.begin(), told.end(), [&](const Edit& edit) {
        return edit.pointer == pointer && edit.value.dump() == value.dump();
      });
      edits.push_back(listed != told.end() ? *listed
                                           : Edit{.model = model,
                                                  .pointer = pointer,
                                                  .value = value,
                                                  .logprobs = answers["unedited"]});
    }
  }
}

std::vector<Edit> all_edits() {
  std::vector<Edit> edits;
  for (const auto& [model, answers] : table()["models"].items()) {
    const json& unedited = answers["unedited"];
    add_edits(model, answers["same"], Edit::kSame, unedited, edits);
    add_edits(model, answers["differs"], Edit::kDiffers, unedited, edits);
    add_edits(model, answers["refused"], Edit::kRefused, unedited, edits);
    add_added_edits(model, answers, edits);
  }
  return edits;
}

// Returns whether Pagoda differs from transformers by choice: docs/adding_a_model.md lists such
// keys.
bool is_choice(const Edit& edit) {
  const json config = config_of(edit.model);
  const json& text = config.contains("text_config") ? config["text_config"] : config;
  constexpr std::string_view kWindowedAlike[] = {"ministral3", "mistral", "phi3"};
  return edit.pointer.ends_with("/layer_types") &&
         std::ranges::find(kWindowedAlike, text["model_type"].get<std::string>()) !=
             std::end(kWindowedAlike);
}

// Returns whether a refusal names the key, or the block that contains it.
bool names_key(const std::string& message, const Edit& edit) {
  const std::filesystem::path path(edit.pointer);
  const std::string block = path.parent_path().filename();
  return message.find(path.filename()) != std::string::npos ||
         (!block.empty() && message.find(block) != std::string::npos);
}

// The result of reading one edited config.
struct Reading {
  std::string wrong;  // empty: nothing
  bool is_refused = false;
  bool is_changed = false;  // so that it is worth computing
};

Reading read(const Edit& edit, const ModelConfig& unedited) {
  const Result<ModelConfig> config = parse_hf_config(edited_config(edit), "");
  if (!config.ok()) {
    const std::string message(config.status().message());
    // If transformers refuses too, the message may name another key, which contradicts this one.
    if (edit.verdict == Edit::kRefused || names_key(message, edit)) return {.is_refused = true};
    return {.wrong =
                fmt::format("{}: the refusal does not name the key: {}", edit.name(), message)};
  }
  if (!(*config == unedited)) return {.is_changed = edit.verdict != Edit::kRefused};
  if (edit.verdict != Edit::kDiffers) return {};
  return {.wrong =
              fmt::format("{}: is passed over, and changes transformers' answer", edit.name())};
}

// Computes the edited checkpoint. Returns what is wrong, or an empty string; an engine may refuse
// the config.
std::string compute(const Edit& edit) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink(kData + edit.model + "/model.safetensors",
                                  folder.path() + "/model.safetensors");
  std::ofstream(folder.path() + "/config.json") << edited_config(edit);
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  if (!checkpoint.ok()) return checkpoint.status().message();
  const Result<ModelConfig> config = read_model_config(*checkpoint);
  if (!config.ok()) return {};
  const Result<std::unique_ptr<Engine>> engine = create_engine(
      *checkpoint, *config,
      {.backend = Backend::kReference, .max_model_len = kMaxModelLen, .max_num_seqs = 1});
  if (!engine.ok()) return {};
  const WholeAnswer answer =
      run_to_end(**engine, {.prompt_token_ids = table()["prompt_ids"],
                            .sampling = {.temperature = 0, .max_tokens = 0, .prompt_logprobs = 0}});
  if (!answer.error.ok()) return std::string(answer.error.message());
  const std::size_t first = answer.prompt_logprobs.size() - edit.logprobs.size();
  for (std::size_t i = 0; i < edit.logprobs.size(); ++i) {
    const double ours = answer.prompt_logprobs[first + i]->chosen.logprob;
    if (!(std::abs(ours - edit.logprobs[i]) <= kLargestDifference)) {
      return fmt::format("{}: expected a log-probability of {}, got {:.4f}", edit.name(),
                         edit.logprobs[i], ours);
    }
  }
  return {};
}

// Reads all edits; returns those that change what is read.
std::vector<Edit> read_all(const std::vector<Edit>& edits) {
  std::vector<Edit> changed;
  int num_refused = 0;
  std::map<std::string, ModelConfig> unedited;
  for (const Edit& edit : edits) {
    if (is_choice(edit)) continue;
    if (!unedited.contains(edit.model))
      unedited[edit.model] = *parse_hf_config(config_of(edit.model).dump(), "");
    const Reading reading = read(edit, unedited[edit.model]);
    EXPECT_EQ(reading.wrong, "");
    if (reading.is_refused) ++num_refused;
    if (reading.is_changed) changed.push_back(edit);
  }
  std::cout << fmt::format("{} edits: {} are refused by name, {} change what is read\n",
                           edits.size(), num_refused, changed.size());
  return changed;
}

std::vector<Edit> sample_of(const std::vector<Edit>& edits) {
  const char* const asked = std::getenv("PAGODA_CONFIG_EDITS");
  if (asked != nullptr && std::string_view(asked) == "all") return edits;
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const auto day = today.time_since_epoch().count();
  std::cout << fmt::format("{} of {} changed configs are computed, drawn by the day {}\n",
                           kSampleSize, edits.size(), day);
  std::vector<Edit> sample;
  std::sample(edits.begin(), edits.end(), std::back_inserter(sample), kSampleSize,
              std::mt19937_64(static_cast<std::uint64_t>(day)));
  return sample;
}

// Fine-tunes are saved in transformers' newest spelling, even if the model's first files had an
// older one.
TEST(ConfigEdits, ConfigsSavedAnewSayTheSame) {
  for (const auto& [model, answers] : table()["models"].items()) {
    const Result<ModelConfig> first = parse_hf_config(config_of(model).dump(), "");
    const Result<ModelConfig> saved = parse_hf_config(answers["saved"].dump(), "");
    ASSERT_TRUE(first.ok() && saved.ok()) << model << ": " << saved.status().message();
    EXPECT_TRUE(*saved == *first) << model;
    Result<ModelConfig> bare = parse_hf_config(answers["saved_without_head"].dump(), "");
    ASSERT_TRUE(bare.ok()) << model << ": " << bare.status().message();
    EXPECT_EQ(bare->has_head, bare->tie_word_embeddings) << model;
    bare->has_head = first->has_head;
    bare->eos_token_ids = first->eos_token_ids;  // composite configs have them beside the text's
    bare->bos_token_id = first->bos_token_id;
    EXPECT_TRUE(*bare == *first) << model << " without its head";
  }
}

TEST(ConfigEdits, AreAnsweredAsTransformersAnswersOrRefusedByName) {
  const testing::LogCapture quiet;  // hides hundreds of warnings about idle keys
  const std::vector<Edit> edits = all_edits();
  const std::vector<Edit> changed = read_all(edits);
  EXPECT_GT(changed.size(), kSampleSize);
  for (const Edit& edit : sample_of(changed)) EXPECT_EQ(compute(edit), "");
}

}  // namespace
}  // namespace pagoda::golden
