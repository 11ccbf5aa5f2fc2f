#include "hub/pull_file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/progress_bar.h"
#include "core/sha256.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

Status io_error(const fs::path& file, int error) {
  const std::string reason = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return resource_exhausted("[pull] writing {}: {}", file.string(), reason);
  }
  return invalid_argument("[pull] {}: {}", file.string(), reason);
}

// Feeds a file's content to the hasher.
Status hash_file(const fs::path& file, ContentHasher& hasher) {
  const FileHandle input(std::fopen(file.c_str(), "rb"));
  if (input == nullptr) return io_error(file, errno);
  std::vector<std::byte> piece(1 << 20);
  while (const std::size_t length = std::fread(piece.data(), 1, piece.size(), input.get())) {
    hasher.update(std::span(piece).first(length));
  }
  return std::ferror(input.get()) == 0 ? ok_status() : io_error(file, errno);
}

Status wrong_content(const fs::path& file, const ContentId& expected, const std::string& got) {
  const char* name = expected.kind == ContentId::Kind::kSha256 ? "SHA-256" : "git blob id";
  return data_loss("[pull] {}: expected {} {}, got {}", file.string(), name, expected.hex, got);
}

// The file that grows while a transfer runs.
class PartialFile {
 public:
  PartialFile(fs::path path, const ContentId& expected)
      : path_(std::move(path)), expected_(expected) {}

  // Opens the file to continue after what an earlier transfer left.
  Status open() {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path_, error);
    if (error || size > static_cast<std::uintmax_t>(expected_.size)) return restart();
    hasher_.emplace(expected_);
    PAGODA_RETURN_IF_ERROR(hash_file(path_, *hasher_));
    size_ = static_cast<std::int64_t>(size);
    file_.reset(std::fopen(path_.c_str(), "ab"));
    return file_ != nullptr ? ok_status() : io_error(path_, errno);
  }

  Status restart() {
    hasher_.emplace(expected_);
    size_ = 0;
    file_.reset(std::fopen(path_.c_str(), "wb"));
    return file_ != nullptr ? ok_status() : io_error(path_, errno);
  }

  Status append(std::span<const std::byte> data) {
    if (static_cast<std::int64_t>(data.size()) > expected_.size - size_) {
      return data_loss("[pull] {}: expected {} bytes, got more", path_.string(), expected_.size);
    }
    if (std::fwrite(data.data(), 1, data.size(), file_.get()) != data.size()) {
      return io_error(path_, errno);
    }
    hasher_->update(data);
    size_ += static_cast<std::int64_t>(data.size());
    return ok_status();
  }

  // Gives the file its final name if the digest is the expected one; otherwise removes the file.
  Status finish(const fs::path& name) {
    const bool closed = std::fclose(file_.release()) == 0;
    if (!closed) return io_error(path_, errno);
    const std::string digest = hasher_->finish();
    std::error_code error;
    if (digest != expected_.hex) {
      fs::remove(path_, error);
      return wrong_content(name, expected_, digest);
    }
    fs::rename(path_, name, error);
    return error ? io_error(name, error.value()) : ok_status();
  }

  std::int64_t size() const { return size_; }
  double share() const { return static_cast<double>(size_) / std::max<double>(1, expected_.size); }
  bool complete() const { return size_ == expected_.size; }
  Status flush() { return std::fflush(file_.get()) == 0 ? ok_status() : io_error(path_, errno); }

 private:
  const fs::path path_;
  const ContentId expected_;
  FileHandle file_;
  std::optional<ContentHasher> hasher_;
  std::int64_t size_ = 0;
};

// Makes one request for the bytes that are missing.
Status transfer_rest(HttpClient& client, const std::string& url, PartialFile& partial,
                     ProgressBar& bar) {
  const HttpClient::Receiver receiver{
      .start = [&](std::int64_t offset) -> Status {
        return offset == partial.size() ? ok_status() : partial.restart();
      },
      .data = [&](std::span<const std::byte> data) -> Status {
        PAGODA_RETURN_IF_ERROR(partial.append(data));
        bar.show(partial.share(), fmt::format("{:.1f} MB", partial.size() / 1e6));
        return ok_status();
      }};
  Status streamed = client.stream(url, partial.size(), receiver);
  PAGODA_RETURN_IF_ERROR(partial.flush());
  return streamed;
}

Status transfer_all(HttpClient& client, const FilePull& pull, PartialFile& partial) {
  ProgressBar bar(pull.file.filename().string());
  int attempts = 0;
  while (!partial.complete()) {
    const std::int64_t before = partial.size();
    Status status = transfer_rest(client, pull.url, partial, bar);
    if (!status.ok() && status.code() != StatusCode::kUnavailable) return status;
    if (partial.complete()) break;
    if (status.ok()) {
      status = unavailable("[pull] {}: expected {} bytes, got {}", pull.url, pull.expected.size,
                           partial.size());
    }
    attempts = partial.size() > before ? 1 : attempts + 1;
    if (attempts >= pull.max_attempts) return status;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(pull.seconds_between_attempts * attempts));
  }
  return ok_status();
}

}  // namespace

struct ContentHasher::Context {
  struct Free {
    void operator()(EVP_MD_CTX* evp) const { EVP_MD_CTX_free(evp); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> evp{EVP_MD_CTX_new()};
};

ContentHasher::ContentHasher(const ContentId& id) : context_(std::make_unique<Context>()) {
  const bool git = id.kind == ContentId::Kind::kGitBlob;
  const bool started =
      EVP_DigestInit_ex(context_->evp.get(), git ? EVP_sha1() : EVP_sha256(), nullptr) == 1;
  PAGODA_CHECK(started, "SHA-1 and SHA-256 are part of every OpenSSL");
  if (git) {
    const std::string header = fmt::format("blob {}", id.size);
    update(std::as_bytes(std::span(header.c_str(), header.size() + 1)));  // including its NUL
  }
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::update(std::span<const std::byte> data) {
  EVP_DigestUpdate(context_->evp.get(), data.data(), data.size());
}

std::string ContentHasher::finish() {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  EVP_DigestFinal_ex(context_->evp.get(), digest.data(), &length);
  return to_hex(std::span(digest).first(length));
}

Status check_file(const fs::path& file, const ContentId& expected) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return not_found("[pull] {}: {}", file.string(), error.message());
  if (size != static_cast<std::uintmax_t>(expected.size)) {
    return data_loss("[pull] {}: expected {} bytes, got {}", file.string(), expected.size, size);
  }
  ContentHasher hasher(expected);
  PAGODA_RETURN_IF_ERROR(hash_file(file, hasher));
  const std::string digest = hasher.finish();
  return digest == expected.hex ? ok_status() : wrong_content(file, expected, digest);
}

Status pull_file(HttpClient& client, const FilePull& pull) {
  if (check_file(pull.file, pull.expected).ok()) return ok_status();
  PartialFile partial(fs::path(pull.file) += ".partial", pull.expected);
  PAGODA_RETURN_IF_ERROR(partial.open());
  PAGODA_RETURN_IF_ERROR(transfer_all(client, pull, partial));
  return partial.finish(pull.file);
}

}  // namespace pagoda
