#include "hub/stored_models.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "hub/folder_lock.h"
#include "hub/folders.h"
#include "hub/model_store.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kMainRevision = "main";

std::int64_t bytes_in(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error))
    return static_cast<std::int64_t>(fs::file_size(path, error));
  std::int64_t sum = 0;
  for (fs::recursive_directory_iterator each(path, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->is_regular_file(ignored)) sum += static_cast<std::int64_t>(each->file_size(ignored));
  }
  return sum;
}

// Returns the commit in a file of refs/; "" if the file has none.
std::string commit_of(const fs::path& ref) {
  std::ifstream file(ref);
  std::string commit;
  file >> commit;
  return is_commit_id(commit) ? commit : "";
}

// Returns each revision with its commit. A revision may have slashes in it.
std::vector<std::pair<std::string, std::string>> revisions_of(const fs::path& repo) {
  std::vector<std::pair<std::string, std::string>> revisions;
  const fs::path refs = repo / "refs";
  std::error_code error;
  for (fs::recursive_directory_iterator each(refs, error), end; !error && each != end;
       each.increment(error)) {
    const std::string commit = commit_of(each->path());
    if (!commit.empty())
      revisions.emplace_back(each->path().lexically_relative(refs).generic_string(), commit);
  }
  std::sort(revisions.begin(), revisions.end());
  return revisions;
}

// A folder with refs/ and commits: a repository's own, or that of one of its quantisations.
struct RepoFolder {
  fs::path path;
  std::string name;               // hf:ORG/NAME
  std::string quantization = {};  // "": the repository's own
};

std::string hub_name(const RepoFolder& repo, std::string_view revision) {
  std::string name = repo.name;
  if (revision != kMainRevision) name += "@" + std::string(revision);
  if (!repo.quantization.empty()) name += ":" + repo.quantization;
  return name;
}

void add_models(const RepoFolder& repo, std::vector<StoredModel>& models) {
  std::set<std::string> named;
  for (const auto& [revision, commit] : revisions_of(repo.path)) {
    std::error_code error;
    if (!fs::is_directory(repo.path / commit, error)) continue;
    named.insert(commit);
    models.push_back({hub_name(repo, revision), repo.path / commit, bytes_in(repo.path / commit)});
  }
  for (const fs::path& folder : folders_in(repo.path)) {
    const std::string name = folder.filename().string();
    const bool is_partial = name.ends_with(kPartial);
    const std::string commit = is_partial ? name.substr(0, name.size() - kPartial.size()) : name;
    if (!is_commit_id(commit) || named.contains(name)) continue;
    models.push_back({hub_name(repo, commit), folder, bytes_in(folder), !is_partial});
  }
}

void add_repo(const fs::path& org, const fs::path& repo, std::vector<StoredModel>& models) {
  const std::string name =
      fmt::format("hf:{}/{}", org.filename().string(), repo.filename().string());
  add_models({repo, name}, models);
  for (const fs::path& folder : folders_in(repo / kQuantizations))
    add_models({folder, name, folder.filename().string()}, models);
}

// Removes a folder and then its parents while they are empty, except the store's own folder.
void remove_empty_folders(fs::path folder, const fs::path& model_dir) {
  std::error_code error;
  while (folder != model_dir && fs::is_empty(folder, error) && !error) {
    fs::remove(folder, error);
    folder = folder.parent_path();
  }
}

}  // namespace

std::vector<StoredModel> stored_models(const fs::path& model_dir) {
  std::vector<StoredModel> models;
  const fs::path default_file = model_dir / DefaultModel::kFile;
  std::error_code error;
  if (fs::is_regular_file(default_file, error))
    models.push_back({std::string(DefaultModel::kName), default_file, bytes_in(default_file)});
  for (const fs::path& org : folders_in(model_dir / "hf")) {
    for (const fs::path& repo : folders_in(org)) add_repo(org, repo, models);
  }
  return models;
}

Result<std::int64_t> remove_model(std::string_view name, const fs::path& model_dir) {
  const std::vector<StoredModel> models = stored_models(model_dir);
  std::int64_t num_bytes = 0;
  bool is_found = false;
  for (const StoredModel& model : models) {
    if (model.name != name) continue;
    is_found = true;
    std::error_code error;
    std::optional<FolderLock> lock;
    HubFolders folders;
    if (name.starts_with("hf:")) {
      PAGODA_ASSIGN_OR_RETURN(const HubName hub, parse_hub_name(name));
      folders = hub_folders(model_dir, hub);
      PAGODA_ASSIGN_OR_RETURN(FolderLock taken, FolderLock::take(folders.repo));
      lock.emplace(std::move(taken));
      fs::remove(folders.ref, error);
    }
    const bool is_shared = std::any_of(models.begin(), models.end(), [&](const StoredModel& other) {
      return other.path == model.path && other.name != model.name;
    });
    if (is_shared) continue;
    fs::remove_all(model.path, error);
    if (error) return data_loss("{}: {}", model.path.string(), error.message());
    num_bytes += model.num_bytes;
    if (!lock) continue;
    remove_empty_folders(folders.commits / "refs", model_dir);
    remove_empty_folders(folders.commits, model_dir);
    lock->remove_file_if_alone();
    remove_empty_folders(folders.repo, model_dir);
  }
  if (!is_found)
    return not_found("{}: no such model is here; pagoda list shows those that are", name);
  return num_bytes;
}

}  // namespace pagoda
