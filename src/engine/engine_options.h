// EngineOptions: a process's settings, fixed at its start. Settings that subcommands share are
// flags of src/cli/flags/engine_flags.cc. --max-queue is a flag of serve, --profile one of run and
// bench.
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
  bool windowed = true;     // all layers with a sliding window
  std::vector<int> layers;  // further layers, by number
};

struct EngineOptions {
  // Absent: the best one that is built in and finds its device (mlx on Apple, else cpu).
  std::optional<Backend> backend;
  int num_threads = 0;            // 0: the cgroup's quota or the physical cores, whichever is less
  bool int8_activations = false;  // of the cpu backend: faster and less exact (backend/backend.h)
  std::uint64_t seed = 0;         // from which seeds for requests without one are drawn
  int max_model_len = 0;  // tokens; 0: the checkpoint's, shortened to what the KV memory holds
  int max_num_seqs = 0;   // 0: 64; contiguous: fewer where memory is short
  // Tokens of a step. 0: on cpu 512, or 128 per thread (up to 2048) if that is more; on mlx 2048.
  // At least max_num_seqs.
  int max_num_batched_tokens = 0;
  int block_size = 16;                     // tokens
  std::int64_t kv_cache_memory_bytes = 0;  // 0: see engine/kv_sizing.h
  int num_kv_blocks = 0;                   // paged layout only; 0: from kv_cache_memory_bytes
  KvCacheLayout kv_cache_layout = KvCacheLayout::kAuto;
  std::optional<KvFormats> kv_cache_formats;  // absent: float32 on reference, bfloat16 elsewhere
  KvSkippedLayers kv_cache_skipped_layers;
  bool enable_prefix_caching = true;
  // The parent folder of a folder for blocks evicted from the prefix cache; empty: they are
  // dropped.
  std::string prefix_cache_dir;
  // Limit for the files in that folder.
  std::int64_t prefix_cache_dir_bytes = std::int64_t{4} << 30;
  // Gets the events of the prefix cache; null: no events.
  std::shared_ptr<CacheEvents> cache_events;
  int max_queue = 1024;  // waiting prompts, each with all its samples; more are refused
  // applied to every row, in order
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;
  std::shared_ptr<OpProfile> op_profile;  // the ops' times are added here; native backends only
};

// Called with the share of the weights loaded, in (0, 1], on the engine's thread.
using LoadProgress = std::function<void(double)>;

}  // namespace pagoda
