// BlockFile: the file format of a full block of the prefix cache.
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
// Numbers are little-endian. A reader knows scope, digest, tokens and sizes beforehand, and the sum
// covers all other bytes. So a file is valid only if every byte is as expected. Files are written
// without being synced, so a crash of the machine may leave incomplete ones; their sums are wrong.
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

// Returns the size of a file with num_tokens tokens, and num_bytes bytes of keys and values.
std::size_t block_file_size(std::size_t num_tokens, std::size_t num_bytes);

// Writes all of a file except the keys' and values' bytes and the sum. The caller writes those
// bytes at block_file_bytes(). file: [block_file_size], any contents.
void begin_block_file(const BlockFileKey& key, std::span<const int> tokens,
                      std::span<std::byte> file);
// Returns the keys' and values' bytes within a file of num_tokens tokens.
std::span<std::byte> block_file_bytes(std::span<std::byte> file, std::size_t num_tokens);
// Writes the sum of all bytes before it.
void end_block_file(std::span<std::byte> file);

// Checks a file, and returns its keys' and values' bytes. kDataLoss: the file is wrong; the message
// says what was expected.
Result<std::span<const std::byte>> read_block_file(std::span<const std::byte> file,
                                                   const BlockFileKey& key,
                                                   std::span<const int> tokens,
                                                   std::size_t num_bytes);

}  // namespace pagoda
