#include "hub/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <tuple>

#include "hub/model_store.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxFiles = 1024;  // of a model; the largest have about 200
constexpr double kGigabyte = 1e9;
constexpr std::string_view kDynamic = "UD-";

bool is_text_part(std::string_view name) {
  return name == "config.json" || name == "generation_config.json" ||
         name.starts_with("tokenizer") || name.starts_with("chat_template");
}

bool is_wanted_safetensors(std::string_view name) {
  return is_safetensors(name) && !name.starts_with("consolidated");
}

template <typename Predicate>
std::vector<HubFile> top_level_files(const std::vector<HubFile>& files, Predicate predicate) {
  std::vector<HubFile> chosen;
  std::copy_if(files.begin(), files.end(), std::back_inserter(chosen), [&](const HubFile& file) {
    return file.path.find('/') == std::string::npos && predicate(file.path);
  });
  return chosen;
}

// Returns the quantisation in an upper-case name whose words are divided by '-' and '.': the last
// word that is one. "LLAMA-3.2-1B-INSTRUCT-UD-Q4_K_XL" has UD-Q4_K_XL.
std::string quantization_in(const std::string& name) {
  static const std::regex quantization(
      "(^|[-.])((UD-)?(I?Q[0-9]_[A-Z0-9_]+|TQ[0-9]_[0-9]|MXFP4(_MOE)?|BF16|FP?16|FP?32))(?=$|[-.]"
      ")");
  std::string last;
  for (std::sregex_iterator each(name.begin(), name.end(), quantization), end; each != end; ++each)
    last = (*each)[2];
  return last;
}

bool is_wide(std::string_view quantization) {
  return quantization.ends_with("F16") || quantization.ends_with("P16") ||
         quantization.ends_with("32");
}

// Returns whether all weights of such a file have formats that quant/weight_format.h lists. Files
// of K-quants mix those of several sizes.
bool is_read_quantization(std::string_view quantization) {
  constexpr std::array<std::string_view, 7> kPlain = {"Q4_0", "Q4_1",   "Q5_0",  "Q5_1",
                                                      "Q8_0", "IQ4_NL", "IQ4_XS"};
  constexpr std::array<std::string_view, 5> kMixed = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"};
  if (quantization.starts_with(kDynamic)) quantization.remove_prefix(kDynamic.size());
  if (quantization.empty() || is_wide(quantization)) return true;
  return std::find(kPlain.begin(), kPlain.end(), quantization) != kPlain.end() ||
         std::any_of(kMixed.begin(), kMixed.end(),
                     [&](std::string_view start) { return quantization.starts_with(start); });
}

// A GGUF file's path without the number of its part and without ".gguf", in upper case.
struct GgufStem {
  std::string folder;  // with the slash at its end; "" at the top
  std::string name;
};

// Returns the stem of a file with a model's weights; nullopt for all other files.
std::optional<GgufStem> gguf_stem(const std::string& path) {
  static const std::regex part("-[0-9]{5}-OF-[0-9]{5}$");
  constexpr std::string_view kEnding = ".GGUF";
  const std::string upper = upper_case(path);
  if (!upper.ends_with(kEnding)) return {};
  const std::size_t name_at = upper.rfind('/') + 1;
  GgufStem stem{.folder = upper.substr(0, name_at), .name = upper.substr(name_at)};
  stem.name.resize(stem.name.size() - kEnding.size());
  stem.name = std::regex_replace(stem.name, part, "");
  if (stem.name.starts_with("MMPROJ") || stem.name.find("IMATRIX") != std::string::npos) return {};
  return stem;
}

std::string quantization_of(const GgufStem& stem) {
  std::string quantization = quantization_in(stem.name);
  if (!quantization.empty() || stem.folder.empty()) return quantization;
  return quantization_in(stem.folder.substr(0, stem.folder.size() - 1));
}

// Returns the sum of the files' sizes, or the largest number if they sum to more.
std::int64_t bytes_of(const std::vector<HubFile>& files) {
  std::int64_t sum = 0;
  for (const HubFile& file : files) sum = add_bytes(sum, file.content.size);
  return sum;
}

// Returns where a model stands in the order of preference; the lowest is the best.
auto rank(const HubModel& model) {
  const int kind = model.quantization.starts_with(kDynamic) ? 1
                   : model.quantization.ends_with("32")     ? 3
                   : is_wide(model.quantization)            ? 2
                                                            : 0;
  return std::tuple(!model.is_read, kind, -model.num_bytes);
}

std::string in_words(const HubModel& model) {
  return fmt::format("{} ({:.1f} GB)", model.quantization.empty() ? "GGUF" : model.quantization,
                     static_cast<double>(model.num_bytes) / kGigabyte);
}

std::string in_words(const std::vector<HubModel>& models) {
  std::string words;
  for (const HubModel& model : models) words += (words.empty() ? "" : ", ") + in_words(model);
  return words.empty() ? "none" : words;
}

Result<HubModel> named_gguf(const std::vector<HubModel>& models, std::string_view quantization) {
  std::vector<HubModel> found;
  std::copy_if(models.begin(), models.end(), std::back_inserter(found),
               [&](const HubModel& model) { return model.quantization == quantization; });
  if (found.empty())
    return not_found("[hub] expected GGUF in {}, got {}", quantization, in_words(models));
  if (found.size() > 1) {
    return invalid_argument("[hub] expected one GGUF model in {}, got {} and {}", quantization,
                            found[0].files.front().path, found[1].files.front().path);
  }
  if (!found.front().is_read)
    return unsupported("[hub] GGUF in {} has weights that nothing here reads", quantization);
  return found.front();
}

Result<HubModel> best_gguf(const std::vector<HubModel>& models, std::int64_t memory_bytes) {
  const auto is_read = [](const HubModel& model) { return model.is_read; };
  if (std::none_of(models.begin(), models.end(), is_read)) {
    return unsupported("[hub] expected safetensors, or GGUF in a quantisation that is read, got {}",
                       in_words(models));
  }
  const HubModel* smallest = nullptr;
  for (const HubModel& model : models) {
    if (!model.is_read) continue;
    if (fits_memory(model.num_bytes, memory_bytes)) {
      return model.quantization.empty() ? model : named_gguf(models, model.quantization);
    }
    if (smallest == nullptr || model.num_bytes < smallest->num_bytes) smallest = &model;
  }
  return resource_exhausted(
      "[hub] expected a model that fits into {:.1f} GB of memory beside a context of 8,192 tokens, "
      "got at least {}; NAME:{} fetches it all the same",
      static_cast<double>(memory_bytes) / kGigabyte, in_words(*smallest), smallest->quantization);
}

}  // namespace

std::vector<HubModel> gguf_models(const std::vector<HubFile>& files) {
  std::map<std::string, HubModel> by_stem;
  for (const HubFile& file : files) {
    const auto stem = gguf_stem(file.path);
    if (!stem) continue;
    HubModel& model = by_stem[stem->folder + stem->name];
    model.quantization = quantization_of(*stem);
    model.files.push_back(file);
  }
  std::vector<HubModel> models;
  for (auto& [stem, model] : by_stem) {
    std::sort(model.files.begin(), model.files.end(),
              [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
    model.num_bytes = bytes_of(model.files);
    model.is_read = is_read_quantization(model.quantization);
    models.push_back(std::move(model));
  }
  std::stable_sort(models.begin(), models.end(),
                   [](const HubModel& a, const HubModel& b) { return rank(a) < rank(b); });
  return models;
}

bool fits_memory(std::int64_t model_bytes, std::int64_t memory_bytes) {
  return static_cast<double>(model_bytes) * 1.1 + kGigabyte <= static_cast<double>(memory_bytes);
}

Result<ModelFiles> choose_model_files(const std::vector<HubFile>& files,
                                      std::string_view quantization, std::int64_t memory_bytes) {
  ModelFiles chosen{.files = top_level_files(files, is_text_part), .quantization = {}};
  std::vector<HubFile> weights;
  if (quantization.empty()) weights = top_level_files(files, is_wanted_safetensors);
  if (weights.empty()) {
    const std::vector<HubModel> models = gguf_models(files);
    PAGODA_ASSIGN_OR_RETURN(HubModel model, quantization.empty()
                                                ? best_gguf(models, memory_bytes)
                                                : named_gguf(models, quantization));
    weights = std::move(model.files);
    chosen.quantization = std::move(model.quantization);
  }
  chosen.files.insert(chosen.files.end(), weights.begin(), weights.end());
  if (chosen.files.size() > kMaxFiles) {
    return unsupported("[hub] expected a model of at most {} files, got {}", kMaxFiles,
                       chosen.files.size());
  }
  chosen.num_bytes = bytes_of(chosen.files);
  return chosen;
}

}  // namespace pagoda
