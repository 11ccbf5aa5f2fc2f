#include "hub/model_store.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <vector>

#include "core/cache_folder.h"
#include "core/environment.h"
#include "core/nearest_name.h"
#include "hub/folders.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubPrefix = "hf:";

// Returns whether `text` is one part of a hub name: characters that the hub allows, not "." or
// "..".
bool is_plain_name(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 96 && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Returns whether `text` names a revision. A branch may have slashes in its name: "refs/pr/1".
bool is_revision(std::string_view text) {
  while (true) {
    const std::size_t slash = text.find('/');
    if (!is_plain_name(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

// Returns the first file of each GGUF model in a folder: all except "-00002-of-00003.gguf" and the
// like.
std::vector<fs::path> gguf_models_in(const fs::path& folder) {
  static const std::regex later_part("-(?!00001)[0-9]{5}-of-[0-9]{5}\\.gguf$");
  std::vector<fs::path> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf") && !std::regex_search(name, later_part))
      models.push_back(entry.path());
  }
  std::sort(models.begin(), models.end());
  return models;
}

bool holds_safetensors(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return is_safetensors(entry.path().filename().string());
  });
}

// Returns what the engine opens in a folder: the folder itself, or the GGUF model in it.
Result<fs::path> model_in(const fs::path& folder) {
  if (holds_safetensors(folder)) return folder;
  const std::vector<fs::path> models = gguf_models_in(folder);
  if (models.size() < 2) return models.empty() ? folder : models.front();
  std::string names;
  for (const fs::path& model : models)
    names += (names.empty() ? "" : ", ") + model.filename().string();
  return invalid_argument("[model] {}: expected one GGUF model in the folder, got {}",
                          folder.string(), names);
}

// Returns the model at a path that exists.
Result<fs::path> model_at(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return model_in(path);
  if (!is_safetensors(path.filename().string())) return path;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::exists(folder / "config.json", error)) {
    return invalid_argument(
        "[model] {}: expected config.json and tokenizer.json beside it, got neither; weights "
        "alone are no model",
        path.string());
  }
  return folder;
}

Result<fs::path> resolve_default_model(const fs::path& model_dir) {
  const fs::path file = model_dir / DefaultModel::kFile;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) {
    return not_found(
        "[model] smollm2: expected {}, which is not there; `pagoda pull smollm2` fetches it",
        file.string());
  }
  if (size != static_cast<std::uintmax_t>(DefaultModel::kSize)) {
    return data_loss("[model] {}: expected {} bytes, got {}; `pagoda pull smollm2` fetches it anew",
                     file.string(), DefaultModel::kSize, size);
  }
  return file;
}

Result<fs::path> resolve_hub_model(std::string_view model, const fs::path& model_dir) {
  PAGODA_ASSIGN_OR_RETURN(const HubName name, parse_hub_name(model));
  const HubFolders folders = hub_folders(model_dir, name);
  std::string commit = name.revision;
  if (!is_commit_id(commit)) {
    std::ifstream ref(folders.ref);
    commit.clear();
    std::getline(ref, commit);
  }
  std::error_code error;
  if (!is_commit_id(commit) || !fs::is_directory(folders.commit(commit), error)) {
    return not_found("[model] {} is not on this machine; `pagoda pull {}` fetches it", model,
                     model);
  }
  return model_in(folders.commit(commit));
}

// Returns `smollm2` and the names of all pulled models.
std::vector<std::string> known_names(const fs::path& model_dir) {
  std::vector<std::string> names = {std::string(DefaultModel::kName)};
  for (const fs::path& org : folders_in(model_dir / "hf")) {
    for (const fs::path& repo : folders_in(org))
      names.push_back(fmt::format("hf:{}/{}", org.filename().string(), repo.filename().string()));
  }
  return names;
}

Status unknown_model(std::string_view model, const fs::path& model_dir) {
  if (parse_hub_name(fmt::format("{}{}", kHubPrefix, model)).ok()) {
    return not_found(
        "[model] {0}: no such file or folder; hf:{0} is the hub's model of that name, and `pagoda "
        "pull hf:{0}` fetches it",
        model);
  }
  const auto nearest = nearest_name(model, known_names(model_dir));
  if (!nearest && (model.find('/') != std::string_view::npos || model.ends_with(".gguf")))
    return not_found("[model] {}: no such file or folder", model);
  return not_found(
      "[model] {}: no such file or folder; expected a GGUF file, a folder, smollm2 or "
      "hf:ORG/NAME[@REVISION][:QUANTIZATION]{}",
      model, nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

bool is_safetensors(std::string_view file_name) {
  return file_name.ends_with(".safetensors") || file_name.ends_with(".safetensors.index.json");
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

bool is_default_model(const fs::path& path) {
  std::error_code error;
  return path.filename() == DefaultModel::kFile &&
         fs::file_size(path, error) == static_cast<std::uintmax_t>(DefaultModel::kSize) && !error;
}

Result<fs::path> default_model_dir() {
  if (const std::string folder = environment("PAGODA_MODEL_DIR"); !folder.empty()) {
    return fs::path(folder);
  }
  if (const Result<fs::path> cache = cache_folder(); cache.ok()) return cache.value() / "models";
  return not_found("[model] expected one of PAGODA_MODEL_DIR, XDG_CACHE_HOME and HOME to be set");
}

Result<HubName> parse_hub_name(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument("[model] expected hf:ORG/NAME[@REVISION][:QUANTIZATION], got {}", text);
  };
  if (!text.starts_with(kHubPrefix)) return refuse();
  std::string_view repo = text.substr(kHubPrefix.size());
  HubName name;
  if (const std::size_t colon = repo.find(':'); colon != std::string_view::npos) {
    name.quantization = upper_case(repo.substr(colon + 1));
    if (!is_plain_name(name.quantization)) return refuse();
    repo = repo.substr(0, colon);
  }
  if (const std::size_t at = repo.find('@'); at != std::string_view::npos) {
    name.revision = repo.substr(at + 1);
    repo = repo.substr(0, at);
  }
  const std::size_t slash = repo.find('/');
  if (slash == std::string_view::npos) return refuse();
  name.org = repo.substr(0, slash);
  name.name = repo.substr(slash + 1);
  if (!is_plain_name(name.org) || !is_plain_name(name.name) || !is_revision(name.revision)) {
    return refuse();
  }
  return name;
}

bool is_commit_id(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

HubFolders hub_folders(const fs::path& model_dir, const HubName& name) {
  const fs::path repo = model_dir / "hf" / name.org / name.name;
  const fs::path commits =
      name.quantization.empty() ? repo : repo / kQuantizations / name.quantization;
  return {.repo = repo, .commits = commits, .ref = commits / "refs" / name.revision};
}

std::string typed_name(std::string_view model) {
  const Result<HubName> name = parse_hub_name(model);
  if (!name.ok()) return std::string(model);
  return name->quantization.empty() ? name->repo() : name->repo() + ":" + name->quantization;
}

Result<fs::path> resolve_model(std::string_view model, const fs::path& model_dir) {
  std::error_code error;
  if (fs::exists(model, error)) return model_at(model);
  if (model == DefaultModel::kName) return resolve_default_model(model_dir);
  if (model.starts_with(kHubPrefix)) return resolve_hub_model(model, model_dir);
  return unknown_model(model, model_dir);
}

Result<fs::path> resolve_model(std::string_view model) {
  std::error_code error;
  if (fs::exists(model, error)) return model_at(model);
  PAGODA_ASSIGN_OR_RETURN(const fs::path model_dir, default_model_dir());
  return resolve_model(model, model_dir);
}

}  // namespace pagoda
