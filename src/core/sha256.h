// SHA-256 (FIPS 180-4), by OpenSSL. A Sha256 object is thread-compatible; the free functions are
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace pagoda {

using Sha256Digest = std::array<std::uint8_t, 32>;

// A hash for maps keyed by digests: the first bytes of the digest.
struct Sha256DigestHash {
  std::size_t operator()(const Sha256Digest& digest) const {
    std::size_t hash;
    std::memcpy(&hash, digest.data(), sizeof hash);
    return hash;
  }
};

// Computes the digest of data in pieces: update() any number of times, then finish() once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> data);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Returns the digest of data in one piece.
Sha256Digest sha256(std::span<const std::byte> data);
inline Sha256Digest sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

// Returns two lower-case digits per byte, as in checksum files.
std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace pagoda
