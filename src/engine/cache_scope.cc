#include "engine/cache_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/machine.h"
#include "core/start_thread.h"
#include "kv/disk_cache.h"

namespace pagoda {
namespace {

constexpr std::int64_t kPartBytes = std::int64_t{16} << 20;
constexpr int kFixedPromptTokens = 64;

// A part of a file that one thread reads.
struct FilePart {
  std::string path;
  std::int64_t begin = 0;
  std::int64_t size = 0;
  Sha256Digest digest = {};
  bool is_read = false;
};

void hash_part(FilePart& part) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(part.size));
  std::ifstream file(part.path, std::ios::binary);
  file.seekg(part.begin);
  file.read(reinterpret_cast<char*>(bytes.data()), part.size);
  part.is_read = file.good() || part.size == 0;
  part.digest = sha256(bytes);
}

// Returns a digest of the files in their order: of the sizes of all, then of the digests of all
// parts.
Result<Sha256Digest> hash_files(const std::vector<std::string>& paths) {
  Sha256 hash;
  std::vector<FilePart> parts;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
    if (error) return unavailable("[kv cache] scope: {}: {}", path, error.message());
    hash.update(fmt::format("{} ", size));
    for (std::int64_t begin = 0; begin < size; begin += kPartBytes)
      parts.push_back({.path = path, .begin = begin, .size = std::min(kPartBytes, size - begin)});
  }
  std::atomic<std::size_t> next = 0;
  const auto hash_parts = [&] {
    for (std::size_t part = next++; part < parts.size(); part = next++) hash_part(parts[part]);
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 1; i < default_num_threads(); ++i) threads.push_back(start_thread(hash_parts));
  } catch (const NoThread&) {
    // The threads that have started, and this one, hash all parts.
  }
  hash_parts();
  for (std::thread& thread : threads) thread.join();
  for (const FilePart& part : parts) {
    if (!part.is_read) return unavailable("[kv cache] scope: {} cannot be read", part.path);
    hash.update(std::as_bytes(std::span(part.digest)));
  }
  return hash.finish();
}

// Describes the layout and the formats of keys and values in words.
std::string text_of(const KvLayout& layout) {
  std::string text = fmt::format("blocks of {} tokens;", layout.block_size);
  for (const LayerKvLayout& layer : layout.layers) {
    text += fmt::format(" {} x {} {} and {} of window {};", layer.num_kv_heads, layer.head_dim,
                        kv_format_name(layer.formats.keys), kv_format_name(layer.formats.values),
                        layer.window);
    if (layout.num_groups() > 1)
      text += fmt::format(" group {} lane {} part {};", layer.group, layer.lane, layer.part);
  }
  return text;
}

// Computes a prompt that is always the same, and returns the digest of the blocks that it fills.
Result<Sha256Digest> hash_fixed_prompt(const CacheScopeParts& parts,
                                       const SchedulerOptions& options, int vocab_size) {
  Scheduler scheduler(options, parts.pool);
  const int num_tokens = std::min(kFixedPromptTokens, options.max_model_len);
  GenerationRequest request;
  for (int i = 0; i < num_tokens; ++i)
    request.prompt_token_ids.push_back((7 + 101 * i) % vocab_size);
  request.sampling.max_tokens = 0;
  scheduler.add({.id = 0, .generation = std::move(request), .seed = 0});
  Sha256Digest digest = {};
  while (!scheduler.idle()) {
    const Plan& plan = scheduler.plan();
    Status status = parts.runner.forward(plan);
    if (status.ok()) status = parts.runner.draw(plan);
    if (status.ok()) status = parts.runner.sample(plan, /*wants_logits=*/false).status();
    if (!status.ok()) {
      scheduler.fail(plan, status);
      parts.runner.abandon();
      return status.with_context("[kv cache] scope: the fixed prompt");
    }
    Sha256 hash;
    std::vector<std::byte> bytes(parts.memory.num_bytes());
    const Sequence& sequence = *plan.sequences.front().sequence;
    for (int group = 0; group < sequence.blocks().num_groups(); ++group) {
      for (const int block_id : sequence.block_table(group)) {
        if (block_id == kNoBlock) continue;
        parts.memory.read(block_id, bytes);
        hash.update(bytes);
      }
    }
    digest = hash.finish();
    scheduler.commit(plan, {});
  }
  (void)scheduler.take_finished();
  parts.runner.abandon();  // the engine's own scheduler counts arrivals from 0 again
  return digest;
}

}  // namespace

Result<std::unique_ptr<BlockFiles>> open_tier_files(const EngineOptions& options) {
  if (options.prefix_cache_dir.empty()) return std::unique_ptr<BlockFiles>();
  if (!options.enable_prefix_caching) {
    return invalid_argument(
        "[kv cache] prefix-cache-dir: expected prefix caching on, got --no-enable-prefix-caching");
  }
  if (options.kv_cache_layout == KvCacheLayout::kContiguous) {
    return invalid_argument(
        "[kv cache] prefix-cache-dir: expected --kv-cache-layout auto or paged, got contiguous");
  }
  return open_block_files(options.prefix_cache_dir);
}

Result<Sha256Digest> cache_scope(const Checkpoint& checkpoint, const KvLayout& layout,
                                 const CacheScopeParts& parts,
                                 const SchedulerOptions& scheduler_options, int vocab_size) {
  const Clock::TimePoint start = Clock::system().now();
  PAGODA_ASSIGN_OR_RETURN(const Sha256Digest files, hash_files(checkpoint.paths()));
  PAGODA_ASSIGN_OR_RETURN(const Sha256Digest fixed_prompt,
                          hash_fixed_prompt(parts, scheduler_options, vocab_size));
  Sha256 hash;
  hash.update(std::as_bytes(std::span(files)));
  hash.update(text_of(layout));
  hash.update(parts.exec.arithmetic());
  hash.update(std::as_bytes(std::span(fixed_prompt)));
  const Sha256Digest scope = hash.finish();
  log_info("[kv cache] prefix-cache-dir: scope {:.16}, found in {:.2f} s", to_hex(scope),
           seconds_between(start, Clock::system().now()));
  return scope;
}

std::unique_ptr<BlockTier> make_tier(const EngineOptions& options, const KvLayout& layout,
                                     const Sha256Digest& scope, BlockMemory memory,
                                     std::unique_ptr<BlockFiles> files) {
  return std::make_unique<DiskCache>(
      DiskCacheOptions{.scope = scope,
                       .max_bytes = options.prefix_cache_dir_bytes,
                       .block_size = static_cast<std::size_t>(layout.block_size)},
      std::move(memory), std::move(files));
}

}  // namespace pagoda
