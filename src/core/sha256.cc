#include "core/sha256.h"

#include <openssl/evp.h>

#include "core/check.h"

namespace pagoda {

struct Sha256::Context {
  struct Free {
    void operator()(EVP_MD_CTX* evp) const { EVP_MD_CTX_free(evp); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> evp{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  const bool started = context_->evp != nullptr &&
                       EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1;
  PAGODA_CHECK(started, "SHA-256 is part of every OpenSSL");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> data) {
  PAGODA_CHECK(context_ != nullptr, "update() comes before finish()");
  EVP_DigestUpdate(context_->evp.get(), data.data(), data.size());  // cannot fail once started
}

Sha256Digest Sha256::finish() {
  PAGODA_CHECK(context_ != nullptr, "finish() is called once");
  Sha256Digest digest;
  EVP_DigestFinal_ex(context_->evp.get(), digest.data(), nullptr);
  context_.reset();
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> data) {
  Sha256Digest digest;
  PAGODA_CHECK(
      EVP_Digest(data.data(), data.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1,
      "SHA-256 is part of every OpenSSL");
  return digest;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

}  // namespace pagoda
