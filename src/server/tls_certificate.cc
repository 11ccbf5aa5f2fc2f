#include "server/tls_certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include <boost/asio/buffer.hpp>
#include <fstream>
#include <iterator>

#include "core/log.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::chrono::seconds kLooksEvery(1);
constexpr std::size_t kMaxPemBytes = 1 << 20;

Result<std::string> read_pem(std::string_view what, const std::string& path) {
  std::error_code error;
  const std::uintmax_t num_bytes = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file)
    return not_found("[tls] {}: expected a file with the {}, got one that can't be read", path,
                     what);
  if (num_bytes > kMaxPemBytes) {
    return invalid_argument("[tls] {}: expected at most {} bytes, got {}", path, kMaxPemBytes,
                            num_bytes);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Status wrong_pem(std::string_view what, const std::string& path, const error_code& error) {
  const auto code = static_cast<unsigned long>(error.value());
  const bool is_of_another =
      ERR_GET_LIB(code) == ERR_LIB_X509 && (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
                                            ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH);
  return invalid_argument("[tls] {}: expected the {} in PEM, got {}", path, what,
                          is_of_another ? "that of another" : "something else");
}

}  // namespace

Result<std::unique_ptr<TlsCertificate>> TlsCertificate::load(TlsFiles files) {
  std::unique_ptr<TlsCertificate> certificate(new TlsCertificate(std::move(files)));
  certificate->times_ = certificate->file_times();
  certificate->looked_at_ = std::chrono::steady_clock::now();
  PAGODA_RETURN_IF_ERROR(certificate->read());
  return certificate;
}

std::shared_ptr<ssl::context> TlsCertificate::context() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_ < kLooksEvery) return context_;
  looked_at_ = now;
  const FileTimes times = file_times();
  if (times == times_) return context_;
  times_ = times;
  const Status status = read();
  if (status.ok()) {
    log_info("[tls] {}: the certificate has changed", files_.certificate);
  } else {
    log_warning("{}; the certificate that was read before stays", status.message());
  }
  return context_;
}

// Leaves the context as it is unless both files can be taken.
Status TlsCertificate::read() {
  constexpr std::string_view kCertificate = "certificate", kKey = "certificate's key";
  PAGODA_ASSIGN_OR_RETURN(const std::string chain, read_pem(kCertificate, files_.certificate));
  PAGODA_ASSIGN_OR_RETURN(const std::string key, read_pem(kKey, files_.key));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // TLS 1.2 with what TLS 1.3 has alone: keys that are thrown away, and ciphers that authenticate.
  SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // of idle connections
  // A key with a passphrase would be asked for on the terminal.
  bool has_passphrase = false;
  error_code error;
  context->set_password_callback(
      [&has_passphrase](std::size_t, ssl::context::password_purpose) {
        has_passphrase = true;
        return std::string();
      },
      error);
  context->use_certificate_chain(boost::asio::buffer(chain), error);
  if (error) return wrong_pem(kCertificate, files_.certificate, error);
  context->use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  if (has_passphrase)
    return invalid_argument("[tls] {}: expected a key without a passphrase, got one with it",
                            files_.key);
  if (error) return wrong_pem(kKey, files_.key, error);
  context_ = std::move(context);
  return ok_status();
}

TlsCertificate::FileTimes TlsCertificate::file_times() const {
  std::error_code ignored;
  return {fs::last_write_time(files_.certificate, ignored),
          fs::last_write_time(files_.key, ignored)};
}

}  // namespace pagoda
