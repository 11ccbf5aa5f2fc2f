#include "hub/hub_revision.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/json.h"
#include "hub/model_store.h"

namespace pagoda {
namespace {

using nlohmann::json;

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

}  // namespace pagoda
