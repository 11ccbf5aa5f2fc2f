// EngineOptions: a process's settings, fixed at its start. Settings that subcommands share are
// flags of src/cli/flags/engine_flags.cc; --max-queue is serve's, --profile run's and bench's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/kv_format.h"
#include "tensor/exec.h"

namespace pagoda {

class CacheEvents;      // kv/cache_events.h
class LogitsProcessor;  // sampling/host/logits_processor.h

enum class KvCacheLayout : std::uint8_t { kAuto, kPaged, kContiguous };

// Layers that stay in bfloat16 where the cache's keys or values are codes.
struct KvSkippedLayers {
  bool windowed = true;     // those with a sliding window
  std::vector<int> layers;  // and these
};

struct EngineOptions {
  std::optional<Backend>
      backend;          // absent: the best one built that finds its device (mlx on Apple, else cpu)
  int num_threads = 0;  // 0: the cgroup's quota or the physical cores, whichever is less
  bool int8_activations = false;  // of the cpu backend: faster and less exact (backend/backend.h)
  std::uint64_t seed = 0;         // of the seeds drawn for requests without one
  int max_model_len = 0;  // tokens; 0: the checkpoint's, shortened to what the KV memory holds
  int max_num_seqs = 0;   // 0: 64; contiguous: fewer where memory is short
  // Tokens of a step. 0: 512 on cpu, or 128 a thread up to 2048; 2048 on mlx; at least max_num_seqs.
  int max_num_batched_tokens = 0;
  int block_size = 16;                     // tokens
  std::int64_t kv_cache_memory_bytes = 0;  // 0: see engine/kv_sizing.h
  int num_kv_blocks = 0;                   // paged; 0: from the bytes
  KvCacheLayout kv_cache_layout = KvCacheLayout::kAuto;
  std::optional<KvFormats> kv_cache_formats;  // absent: float32 on reference, bfloat16 elsewhere
  KvSkippedLayers kv_cache_skipped_layers;
  bool enable_prefix_caching = true;
  // In which a folder is made for blocks that leave the prefix cache; empty: they are forgotten.
  std::string prefix_cache_dir;
  std::int64_t prefix_cache_dir_bytes = std::int64_t{4} << 30;  // that its files may take
  std::shared_ptr<CacheEvents> cache_events;  // told of the prefix cache's blocks; null: none is
  int max_queue = 1024;  // prompts waiting, each with all its samples; one more is refused
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;  // on every row, in order
  std::shared_ptr<OpProfile> op_profile;  // what the steps' ops cost is added here; native backends
};

// Called with the share of the weights loaded, in (0, 1], on the engine's thread.
using LoadProgress = std::function<void(double)>;

}  // namespace pagoda
