// Fetches one file from a URL to its place on disk. A transfer that broke is resumed, and the
// content is checked before the file gets its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "hub/pull_http.h"

namespace pagoda {

// Identifies a file's content before it is fetched. The hub names large files by the SHA-256 of
// their bytes, and small ones by their git blob id: the SHA-1 of "blob <size>\0" and the bytes.
struct ContentId {
  enum class Kind { kSha256, kGitBlob };
  Kind kind = Kind::kSha256;
  std::string hex;  // 64 or 40 lower-case digits
  std::int64_t size = 0;
};

// Computes the digest that a ContentId asks for, from pieces of the content.
class ContentHasher {
 public:
  explicit ContentHasher(const ContentId& id);
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  void update(std::span<const std::byte> data);
  std::string finish();  // hex digits; call it once

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Checks the size and the digest of a file. kDataLoss: one of them is not as expected. kNotFound:
// there is no such file.
Status check_file(const std::filesystem::path& file, const ContentId& expected);

struct FilePull {
  std::string url;
  std::filesystem::path file;  // the final name; until it is complete, ".partial" is appended
  ContentId expected;
  int max_attempts = 5;  // in a row that bring no new byte
  double seconds_between_attempts = 1.0;
};

// Fetches the file unless it is complete already. A transfer that breaks continues at its last
// byte, in this call and in later ones. kDataLoss: the finished file is not as expected, and is
// removed. kResourceExhausted: the disk is full.
Status pull_file(HttpClient& client, const FilePull& pull);

}  // namespace pagoda
