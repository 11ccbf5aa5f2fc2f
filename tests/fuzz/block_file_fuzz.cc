// Any bytes as a file of the prefix cache on disk: as they are, and with a corrected checksum.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/check.h"
#include "kv/block_file.h"

namespace pagoda {
namespace {

constexpr std::size_t kNumTokens = 4, kNumBytes = 40;

// Checks that an accepted file is exactly the file that is written for a block of these tokens.
void read(std::span<const std::byte> file) {
  BlockFileKey key;
  key.scope.fill(1);
  key.digest.fill(2);
  std::vector<int> tokens(kNumTokens);
  std::iota(tokens.begin(), tokens.end(), 3);
  const auto bytes = read_block_file(file, key, tokens, kNumBytes);
  if (!bytes.ok()) return;
  std::vector<std::byte> written(block_file_size(kNumTokens, kNumBytes));
  begin_block_file(key, tokens, written);
  std::ranges::copy(*bytes, block_file_bytes(written, kNumTokens).begin());
  end_block_file(written);
  PAGODA_CHECK(std::ranges::equal(written, file), "a file that is accepted is whole");
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  const auto file = std::as_bytes(std::span(data, size));
  read(file);
  std::vector<std::byte> summed(file.begin(), file.end());
  if (summed.size() >= block_file_size(0, 0)) {
    end_block_file(summed);
    read(summed);
  }
  return 0;
}
