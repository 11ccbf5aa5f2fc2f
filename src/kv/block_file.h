// BlockFile: a full block of the prefix cache as bytes of a file.
//
//   magic       8 bytes, "pagodakv"
//   version     u32, 1
//   num_tokens  u32
//   num_bytes   u64, of keys and values
//   scope       32 bytes: what the bytes depend on besides tokens (engine/cache_scope.h)
//   digest      32 bytes: of the block (kv/prefix_cache.h)
//   tokens      i32 [num_tokens]
//   bytes       [num_bytes], each layer's arrays as they lie in memory
//   sum         32 bytes: SHA-256 of all before it
//
// Numbers are little-endian. A file is right where every byte is as expected: a reader knows scope,
// digest, tokens and sizes beforehand, and the sum covers the rest. Files are written without being
// synced, so that a machine's crash may leave torn ones; their sums are wrong.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/sha256.h"
#include "core/status.h"

namespace pagoda {

struct BlockFileKey {
  Sha256Digest scope = {};
  Sha256Digest digest = {};
};

// Returns the bytes of a file with so many tokens and bytes of keys and values.
std::size_t block_file_size(std::size_t num_tokens, std::size_t num_bytes);

// Writes all of a file but the sum and the keys' and values' bytes, which the caller writes where
// block_file_bytes() says. file: [block_file_size], any contents.
void begin_block_file(const BlockFileKey& key, std::span<const int> tokens,
                      std::span<std::byte> file);
// Returns where the keys' and values' bytes are in a file of so many tokens.
std::span<std::byte> block_file_bytes(std::span<std::byte> file, std::size_t num_tokens);
// Writes the sum of all before it.
void end_block_file(std::span<std::byte> file);

// Returns the keys' and values' bytes of a file that is all right. Else kDataLoss, which says what
// was expected.
Result<std::span<const std::byte>> read_block_file(std::span<const std::byte> file,
                                                   const BlockFileKey& key,
                                                   std::span<const int> tokens,
                                                   std::size_t num_bytes);

}  // namespace pagoda
