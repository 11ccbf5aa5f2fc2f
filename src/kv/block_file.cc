#include "kv/block_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"

namespace pagoda {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(int) == 4);

constexpr std::array<char, 8> kMagic = {'p', 'a', 'g', 'o', 'd', 'a', 'k', 'v'};
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t num_tokens = 0;
  std::uint64_t num_bytes = 0;
  Sha256Digest scope = {};
  Sha256Digest digest = {};
};
static_assert(sizeof(Header) == 88);

constexpr std::size_t kSumBytes = sizeof(Sha256Digest);

Status check_header(const Header& header, const Header& expected) {
  if (header.magic != expected.magic)
    return data_loss("[block file] magic: expected \"pagodakv\", got something else");
  if (header.version != expected.version) {
    return data_loss("[block file] version: expected {}, got {}", expected.version, header.version);
  }
  if (header.num_tokens != expected.num_tokens || header.num_bytes != expected.num_bytes) {
    return data_loss("[block file] expected {} tokens and {} bytes, got {} and {}",
                     expected.num_tokens, expected.num_bytes, header.num_tokens, header.num_bytes);
  }
  if (header.scope != expected.scope || header.digest != expected.digest) {
    return data_loss("[block file] expected block {}, got {}", to_hex(expected.digest),
                     to_hex(header.digest));
  }
  return ok_status();
}

}  // namespace

std::size_t block_file_size(std::size_t num_tokens, std::size_t num_bytes) {
  return sizeof(Header) + num_tokens * sizeof(int) + num_bytes + kSumBytes;
}

void begin_block_file(const BlockFileKey& key, std::span<const int> tokens,
                      std::span<std::byte> file) {
  const std::size_t without_bytes = block_file_size(tokens.size(), 0);
  PAGODA_CHECK(file.size() >= without_bytes, "[block file] expected room for a header and a sum");
  Header header;
  header.num_tokens = static_cast<std::uint32_t>(tokens.size());
  header.num_bytes = file.size() - without_bytes;
  header.scope = key.scope;
  header.digest = key.digest;
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, tokens.data(), tokens.size_bytes());
}

std::span<std::byte> block_file_bytes(std::span<std::byte> file, std::size_t num_tokens) {
  return file.subspan(sizeof(Header) + num_tokens * sizeof(int),
                      file.size() - block_file_size(num_tokens, 0));
}

void end_block_file(std::span<std::byte> file) {
  const Sha256Digest sum = sha256(file.first(file.size() - kSumBytes));
  std::memcpy(file.last(kSumBytes).data(), sum.data(), kSumBytes);
}

Result<std::span<const std::byte>> read_block_file(std::span<const std::byte> file,
                                                   const BlockFileKey& key,
                                                   std::span<const int> tokens,
                                                   std::size_t num_bytes) {
  const std::size_t size = block_file_size(tokens.size(), num_bytes);
  if (file.size() != size) {
    return data_loss("[block file] size: expected {} bytes, got {}", size, file.size());
  }
  Header header, expected;
  std::memcpy(&header, file.data(), sizeof header);
  expected.num_tokens = static_cast<std::uint32_t>(tokens.size());
  expected.num_bytes = num_bytes;
  expected.scope = key.scope;
  expected.digest = key.digest;
  PAGODA_RETURN_IF_ERROR(check_header(header, expected));
  if (!std::ranges::equal(file.subspan(sizeof header, tokens.size_bytes()),
                          std::as_bytes(tokens))) {
    return data_loss("[block file] tokens: expected those asked for, got others");
  }
  const Sha256Digest sum = sha256(file.first(size - kSumBytes));
  if (!std::ranges::equal(file.last(kSumBytes), std::as_bytes(std::span(sum)))) {
    return data_loss("[block file] sum: expected {}, got another one", to_hex(sum));
  }
  return file.subspan(size - kSumBytes - num_bytes, num_bytes);
}

}  // namespace pagoda
