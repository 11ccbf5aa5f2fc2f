// One file from a URL to its place on disk, resumed where it was cut short and checked before it
// gets its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "hub/pull_http.h"

namespace pagoda {

// How a file's content is known before it comes. The hub names large files by the SHA-256 of their
// bytes, and small ones by their git blob id: the SHA-1 of "blob <size>\0" and the bytes.
struct ContentId {
  enum class Kind { kSha256, kGitBlob };
  Kind kind = Kind::kSha256;
  std::string hex;  // 64 or 40 lower-case digits
  std::int64_t size = 0;
};

// Computes the digest that a ContentId asks for, over pieces.
class ContentHasher {
 public:
  explicit ContentHasher(const ContentId& id);
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  void update(std::span<const std::byte> data);
  std::string finish();  // hex; once

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Checks the size and the digest of a file. kDataLoss where the file's size or digest is not the
// one expected, kNotFound where there is no file.
Status check_file(const std::filesystem::path& file, const ContentId& expected);

struct FilePull {
  std::string url;
  std::filesystem::path
      file;  // complete: this name; until then: the same with ".partial" behind it
  ContentId expected;
  int max_attempts = 5;  // in a row without a new byte
  double seconds_between_attempts = 1.0;
};

// Fetches the file unless it is there already. A transfer that breaks is taken up again at its last
// byte, in this call and in later ones. A finished file that is not what was expected is removed:
// kDataLoss. A full disk is kResourceExhausted.
Status pull_file(HttpClient& client, const FilePull& pull);

}  // namespace pagoda
