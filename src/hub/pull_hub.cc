#include "hub/pull_hub.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "core/json.h"
#include "core/text_file.h"
#include "hub/folder_lock.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxListingBytes = 16 << 20;
constexpr std::size_t kMaxFiles = 1024;  // of a model; the largest have about 200

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns whether a name has characters that make it look like another name: line breaks, and marks
// that change the direction of text.
bool is_shown_otherwise(std::string_view name) {
  constexpr std::string_view kCharacters[] = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029",
                                              "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                              "\u2066", "\u2067", "\u2068", "\u2069"};
  return std::any_of(std::begin(kCharacters), std::end(kCharacters), [&](std::string_view each) {
    return name.find(each) != std::string_view::npos;
  });
}

// Returns whether a name has control characters, including those of Latin-1 (U+0080 to U+009F).
bool has_controls(std::string_view name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xa0)
      return true;
  }
  return false;
}

// Returns whether a path is relative and has no empty, "." or ".." parts and no backslashes. It
// must not have characters that make it look like another path either.
bool is_safe_path(std::string_view path) {
  if (has_controls(path) || is_shown_otherwise(path)) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (part.find('\\') != std::string_view::npos) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string string_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<HubFile> parse_file(const json& entry) {
  if (!entry.is_object())
    return data_loss("[hub] expected an object a file, got {}", entry.type_name());
  HubFile file{.path = string_at(entry, "rfilename"), .content = {}};
  if (!is_safe_path(file.path)) {
    return data_loss(
        "[hub] file {}: expected a path inside the model's folder, all of it to be seen",
        json(file.path).dump(-1, ' ', /*ensure_ascii=*/true));
  }
  const auto size = entry.find("size");
  if (size == entry.end() || !size->is_number_unsigned() ||
      size->get<std::uint64_t>() > std::uint64_t{1} << 62) {
    return data_loss("[hub] file {}: expected its size, got {}", file.path,
                     size == entry.end() ? "none" : size->dump());
  }
  file.content.size = size->get<std::int64_t>();
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
    file.content.kind = ContentId::Kind::kSha256;
    file.content.hex = string_at(*lfs, "sha256");
  } else {
    file.content.kind = ContentId::Kind::kGitBlob;
    file.content.hex = string_at(entry, "blobId");
  }
  const std::size_t digits = file.content.kind == ContentId::Kind::kSha256 ? 64 : 40;
  if (!is_hex(file.content.hex, digits)) {
    return data_loss("[hub] file {}: expected a digest of {} hex digits, got {}", file.path, digits,
                     json_text(json(file.content.hex)));
  }
  return file;
}

bool is_text_part(std::string_view name) {
  return name == "config.json" || name == "generation_config.json" ||
         name.starts_with("tokenizer") || name.starts_with("chat_template");
}

bool is_wanted_safetensors(std::string_view name) {
  return is_safetensors(name) && !name.starts_with("consolidated");
}

// In the order of preference, in upper case.
constexpr std::array<std::string_view, 6> kGgufFormats = {"Q8_0", "Q4_1", "Q4_0",
                                                          "BF16", "F16",  "F32"};

// Returns whether a file's name contains a format: "model.Q8_0.gguf" and
// "model-q8_0-00001-of-00002.gguf" are Q8_0; "BF16" is not F16.
bool is_gguf_of(std::string_view format, std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (!upper.ends_with(".GGUF")) return false;
  const auto is_border = [&](std::size_t at) {
    return std::isalnum(upper[at]) == 0 && upper[at] != '_';
  };
  for (std::size_t at = upper.find(format); at != std::string::npos;
       at = upper.find(format, at + 1)) {
    if ((at == 0 || is_border(at - 1)) && is_border(at + format.size())) return true;
  }
  return false;
}

template <typename Predicate>
std::vector<HubFile> top_level_files(const std::vector<HubFile>& files, Predicate predicate) {
  std::vector<HubFile> chosen;
  std::copy_if(files.begin(), files.end(), std::back_inserter(chosen), [&](const HubFile& file) {
    return file.path.find('/') == std::string::npos && predicate(file.path);
  });
  return chosen;
}

std::vector<HubFile> choose_gguf(const std::vector<HubFile>& files) {
  auto all = top_level_files(files, [](std::string_view name) { return name.ends_with(".gguf"); });
  if (all.size() == 1) return all;
  for (const std::string_view format : kGgufFormats) {
    auto chosen =
        top_level_files(all, [&](std::string_view name) { return is_gguf_of(format, name); });
    if (!chosen.empty()) return chosen;
  }
  return {};
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return unavailable("[pull] making {}: {}", folder.string(), error.message());
  return ok_status();
}

// Returns how many bytes of the files are not in the folder, or the largest number if the listed
// sizes sum to more.
std::int64_t missing_bytes(const std::vector<HubFile>& files, const fs::path& folder) {
  std::int64_t missing = 0;
  for (const HubFile& file : files) {
    std::int64_t here = 0;
    for (const char* suffix : {"", ".partial"}) {
      std::error_code error;
      const std::uintmax_t size = fs::file_size(folder / (file.path + suffix), error);
      if (!error) here = std::max(here, static_cast<std::int64_t>(size));
    }
    const std::int64_t of_file = std::max<std::int64_t>(0, file.content.size - here);
    missing += std::min(of_file, std::numeric_limits<std::int64_t>::max() - missing);
  }
  return missing;
}

Status check_space(const std::vector<HubFile>& files, const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  const std::int64_t missing = missing_bytes(files, folder);
  if (!error && static_cast<std::uintmax_t>(missing) > space.available) {
    return resource_exhausted("[pull] {}: expected room for {} bytes, got {}", folder.string(),
                              missing, space.available);
  }
  return ok_status();
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
  PAGODA_ASSIGN_OR_RETURN(const std::vector<HubFile> files, choose_model_files(revision.files));
  PAGODA_RETURN_IF_ERROR(make_folder(partial));
  PAGODA_RETURN_IF_ERROR(check_space(files, partial));
  for (const HubFile& file : files) {
    PAGODA_RETURN_IF_ERROR(pull_file(
        client,
        {.url = fmt::format("{}/{}/resolve/{}/{}", options.endpoint, escape_url_path(name.repo()),
                            revision.commit, escape_url_path(file.path)),
         .file = partial / file.path,
         .expected = file.content,
         .seconds_between_attempts = options.seconds_between_attempts}));
  }
  std::error_code error;
  fs::rename(partial, folder, error);
  if (error) return unavailable("[pull] naming {}: {}", folder.string(), error.message());
  return ok_status();
}

}  // namespace

Result<HubRevision> parse_hub_revision(std::string_view listing) {
  const json answer = parse_json(listing);
  if (!answer.is_object()) return data_loss("[hub] expected a JSON object about the revision");
  HubRevision revision{.commit = string_at(answer, "sha"), .files = {}};
  if (!is_commit_id(revision.commit)) {
    return data_loss("[hub] expected a commit of 40 hex digits, got {}",
                     json_text(json(revision.commit)));
  }
  const auto siblings = answer.find("siblings");
  if (siblings == answer.end() || !siblings->is_array()) {
    return data_loss("[hub] expected the list of files, `siblings`");
  }
  for (const json& entry : *siblings) {
    PAGODA_ASSIGN_OR_RETURN(HubFile file, parse_file(entry));
    revision.files.push_back(std::move(file));
  }
  return revision;
}

Result<std::vector<HubFile>> choose_model_files(const std::vector<HubFile>& files) {
  std::vector<HubFile> chosen = top_level_files(files, is_text_part);
  std::vector<HubFile> weights = top_level_files(files, is_wanted_safetensors);
  if (weights.empty()) weights = choose_gguf(files);
  if (weights.empty()) {
    return unsupported("[hub] expected safetensors, or GGUF in one of {}, got neither",
                       fmt::join(kGgufFormats, ", "));
  }
  chosen.insert(chosen.end(), weights.begin(), weights.end());
  if (chosen.size() > kMaxFiles) {
    return unsupported("[hub] expected a model of at most {} files, got {}", kMaxFiles,
                       chosen.size());
  }
  return chosen;
}

Result<fs::path> pull_from_hub(const HubName& name, const HubOptions& options) {
  const HubFolders folders = hub_folders(options.model_dir, name);
  PAGODA_RETURN_IF_ERROR(make_folder(folders.repo));
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
