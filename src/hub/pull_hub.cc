#include "hub/pull_hub.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "core/text_file.h"
#include "hub/folder_lock.h"
#include "hub/model_files.h"
#include "hub/pull_file.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxListingBytes = 16 << 20;

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return unavailable("[pull] making {}: {}", folder.string(), error.message());
  return ok_status();
}

// Returns where a file of the repository is kept in a folder of the store, which has no folders of
// its own.
fs::path place_of(const HubFile& file, const fs::path& folder) {
  return folder / fs::path(file.path).filename();
}

// Returns how many bytes of a file are in the folder.
std::int64_t bytes_here(const HubFile& file, const fs::path& folder) {
  std::int64_t here = 0;
  for (const char* suffix : {"", ".partial"}) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(place_of(file, folder) += suffix, error);
    if (!error) here = std::max(here, static_cast<std::int64_t>(size));
  }
  return here;
}

// Returns what is to be fetched into `folder`.
PullPlan plan_of(const ModelFiles& files, const fs::path& folder) {
  PullPlan plan{.quantization = files.quantization,
                .num_files = files.files.size(),
                .num_bytes = files.num_bytes};
  for (const HubFile& file : files.files) {
    const std::int64_t missing =
        std::max<std::int64_t>(0, file.content.size - bytes_here(file, folder));
    plan.missing_bytes = add_bytes(plan.missing_bytes, missing);
  }
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  constexpr std::uintmax_t kMost = std::numeric_limits<std::int64_t>::max();
  if (!error) plan.free_bytes = static_cast<std::int64_t>(std::min(space.available, kMost));
  return plan;
}

Status check_space(const PullPlan& plan, const fs::path& folder) {
  if (plan.free_bytes < 0 || plan.missing_bytes <= plan.free_bytes) return ok_status();
  return resource_exhausted("[pull] {}: expected room for {} bytes, got {}", folder.string(),
                            plan.missing_bytes, plan.free_bytes);
}

Status write_ref(const fs::path& ref, const std::string& commit) {
  PAGODA_RETURN_IF_ERROR(make_folder(ref.parent_path()));
  const fs::path partial = fs::path(ref) += ".partial";
  PAGODA_RETURN_IF_ERROR(write_text_file(partial, commit + '\n'));
  std::error_code error;
  fs::rename(partial, ref, error);
  if (error) return unavailable("[pull] writing {}: {}", ref.string(), error.message());
  return ok_status();
}

Result<HubRevision> read_revision(HttpClient& client, const HubName& name,
                                  const HubOptions& options) {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", options.endpoint,
                                      escape_url_path(name.repo()), escape_url_path(name.revision));
  PAGODA_ASSIGN_OR_RETURN(const std::string body, client.get(url, kMaxListingBytes));
  auto revision = parse_hub_revision(body);
  if (!revision.ok()) return revision.status().with_context(url);
  return revision;
}

// Fetches every chosen file into the partial folder and checks it, then renames the folder.
Status fetch_commit(HttpClient& client, const HubName& name, const HubRevision& revision,
                    const HubOptions& options) {
  const fs::path folder = hub_folders(options.model_dir, name).commit(revision.commit);
  const fs::path partial = fs::path(folder) += ".partial";
  PAGODA_ASSIGN_OR_RETURN(
      const ModelFiles files,
      choose_model_files(revision.files, name.quantization, options.memory_bytes));
  PAGODA_RETURN_IF_ERROR(make_folder(partial));
  const PullPlan plan = plan_of(files, partial);
  if (options.on_plan) options.on_plan(plan);
  PAGODA_RETURN_IF_ERROR(check_space(plan, partial));
  for (const HubFile& file : files.files) {
    PAGODA_RETURN_IF_ERROR(pull_file(
        client,
        {.url = fmt::format("{}/{}/resolve/{}/{}", options.endpoint, escape_url_path(name.repo()),
                            revision.commit, escape_url_path(file.path)),
         .file = place_of(file, partial),
         .expected = file.content,
         .seconds_between_attempts = options.seconds_between_attempts}));
  }
  std::error_code error;
  fs::rename(partial, folder, error);
  if (error) return unavailable("[pull] naming {}: {}", folder.string(), error.message());
  return ok_status();
}

}  // namespace

Result<HubRevision> read_hub_revision(const HubName& name, const HubOptions& options) {
  HttpClient client(options.token);
  return read_revision(client, name, options);
}

Result<fs::path> pull_from_hub(const HubName& name, const HubOptions& options) {
  const HubFolders folders = hub_folders(options.model_dir, name);
  PAGODA_RETURN_IF_ERROR(make_folder(folders.commits));
  PAGODA_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::take(folders.repo));
  HttpClient client(options.token);
  PAGODA_ASSIGN_OR_RETURN(const HubRevision revision, read_revision(client, name, options));
  const fs::path folder = folders.commit(revision.commit);
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    PAGODA_RETURN_IF_ERROR(fetch_commit(client, name, revision, options));
  }
  if (!is_commit_id(name.revision)) PAGODA_RETURN_IF_ERROR(write_ref(folders.ref, revision.commit));
  return folder;
}

}  // namespace pagoda
