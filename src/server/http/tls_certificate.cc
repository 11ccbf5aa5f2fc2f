#include "server/http/tls_certificate.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/file_descriptor.h"
#include "core/log.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::chrono::seconds kLooksEvery(1);
constexpr std::size_t kMaxPemBytes = 1 << 20;

// Reads a file. Others than regular files are refused before reading, since a pipe may never end.
Result<std::string> read_pem(std::string_view what, const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return not_found("[tls] {}: expected a file with the {}, got one that can't be read", path,
                     what);
  }
  const auto num_bytes = static_cast<std::size_t>(info.st_size);
  if (num_bytes > kMaxPemBytes) {
    return invalid_argument("[tls] {}: expected at most {} bytes, got {}", path, kMaxPemBytes,
                            num_bytes);
  }
  std::string text(num_bytes, '\0');
  std::size_t num_read = 0;
  for (ssize_t more = 1; more > 0 && num_read < num_bytes;
       num_read += static_cast<std::size_t>(more)) {
    more = ::read(file.get(), text.data() + num_read, num_bytes - num_read);
    if (more < 0)
      return not_found("[tls] {}: expected a file with the {}, got {}", path, what,
                       std::generic_category().message(errno));
  }
  text.resize(num_read);
  return text;
}

Status wrong_pem(std::string_view what, const std::string& path, const error_code& error) {
  const auto code = static_cast<unsigned long>(error.value());
  const bool is_of_another =
      ERR_GET_LIB(code) == ERR_LIB_X509 && (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
                                            ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH);
  return invalid_argument("[tls] {}: expected the {} in PEM, got {}", path, what,
                          is_of_another ? "that of another" : "something else");
}

Result<std::shared_ptr<ssl::context>> read_context(const TlsFiles& files) {
  constexpr std::string_view kCertificate = "certificate", kKey = "certificate's key";
  PAGODA_ASSIGN_OR_RETURN(const std::string chain, read_pem(kCertificate, files.certificate));
  PAGODA_ASSIGN_OR_RETURN(const std::string key, read_pem(kKey, files.key));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Restricts TLS 1.2 to what TLS 1.3 always has: ephemeral keys and authenticated ciphers.
  SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // frees the buffers of idle connections
  // Without this callback, OpenSSL would ask for a passphrase on the terminal.
  bool has_passphrase = false;
  error_code error;
  context->set_password_callback(
      [&has_passphrase](std::size_t, ssl::context::password_purpose) {
        has_passphrase = true;
        return std::string();
      },
      error);
  context->use_certificate_chain(boost::asio::buffer(chain), error);
  if (error) return wrong_pem(kCertificate, files.certificate, error);
  context->use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  if (has_passphrase)
    return invalid_argument("[tls] {}: expected a key without a passphrase, got one with it",
                            files.key);
  if (error) return wrong_pem(kKey, files.key, error);
  return context;
}

using FileTimes = std::pair<fs::file_time_type, fs::file_time_type>;

FileTimes times_of(const TlsFiles& files) {
  std::error_code ignored;
  return {fs::last_write_time(files.certificate, ignored), fs::last_write_time(files.key, ignored)};
}

}  // namespace

// The files and the context read from them, shared by the watching thread and those that accept. It
// outlives the TlsCertificate if a file system blocks the thread.
class TlsCertificate::Files {
 public:
  explicit Files(TlsFiles files) : files_(std::move(files)) {}

  Status read_first() {
    times_ = times_of(files_);
    PAGODA_ASSIGN_OR_RETURN(context_, read_context(files_));
    looked_at_ = std::chrono::steady_clock::now();
    return ok_status();
  }

  std::shared_ptr<ssl::context> context() {
    const std::lock_guard lock(mutex_);
    if (!is_to_look_ && std::chrono::steady_clock::now() - looked_at_ >= kLooksEvery) {
      is_to_look_ = true;
      changed_.notify_all();
    }
    return context_;
  }

  void look_until_ended() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_to_look_ || is_ending_; });
      if (is_ending_) return;
      lock.unlock();
      std::shared_ptr<ssl::context> renewed = look();
      lock.lock();
      if (renewed) context_ = std::move(renewed);
      looked_at_ = std::chrono::steady_clock::now();
      is_to_look_ = false;
    }
  }

  // Makes look_until_ended() return.
  void end() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }

 private:
  // Returns a context from the files if they have changed; null if they have not or can't be used.
  std::shared_ptr<ssl::context> look() {
    const FileTimes times = times_of(files_);
    if (times == times_) return nullptr;
    times_ = times;
    auto renewed = read_context(files_);
    if (!renewed.ok()) {
      log_warning("{}; the certificate that was read before stays", renewed.status().message());
      return nullptr;
    }
    log_info("[tls] {}: the certificate has changed", files_.certificate);
    return *std::move(renewed);
  }

  const TlsFiles files_;
  // Times of the files read last, usable or not. Only the watching thread uses them.
  FileTimes times_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<ssl::context> context_;
  std::chrono::steady_clock::time_point looked_at_;
  bool is_to_look_ = false;
  bool is_ending_ = false;
};

Result<std::unique_ptr<TlsCertificate>> TlsCertificate::load(TlsFiles files) {
  auto read = std::make_shared<Files>(std::move(files));
  PAGODA_RETURN_IF_ERROR(read->read_first());
  return std::unique_ptr<TlsCertificate>(new TlsCertificate(std::move(read)));
}

TlsCertificate::TlsCertificate(std::shared_ptr<Files> files)
    : files_(std::move(files)), thread_([files = files_] { files->look_until_ended(); }) {}

TlsCertificate::~TlsCertificate() {
  files_->end();
}

std::shared_ptr<ssl::context> TlsCertificate::context() {
  return files_->context();
}

}  // namespace pagoda
