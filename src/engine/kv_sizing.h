// How much KV cache an engine takes, and the limits that follow from it. A pure function of
// options, checkpoint and memory.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "engine/engine_options.h"
#include "kv/kv_layout.h"
#include "model/model_config.h"

namespace pagoda {

struct KvSizing {
  KvFormats formats;  // of the layers that are not skipped
  KvLayout layout;
  int num_blocks = 0;
  int max_model_len = 0;  // tokens; at most num_blocks * block_size
  int max_num_seqs = 0;
};

// Decides the format and shape of each layer's entries. `backend` chooses the format that `auto`
// means. kInvalidArgument: a skipped layer that the model lacks or that reads another layer's
// entries, or int4 with an odd head_dim.
Result<KvLayout> lay_out_kv_cache(const EngineOptions& options, const ModelConfig& config,
                                  Backend backend);

// Decides how many blocks the KV cache has, and how long a context may be. Entries have the layout
// of lay_out_kv_cache(). `available_bytes` is what the machine has left after the weights. By
// default the pool holds max_num_seqs contexts of the model's length. It stays within half of what
// is available and 4 GiB, or one whole context if that is more. A pool that cannot hold one whole
// context shortens max_model_len. kInvalidArgument: a context of one token, a number of blocks in
// the contiguous layout, or an error of lay_out_kv_cache(). kResourceExhausted: not even one block,
// or a context of two tokens, fits.
Result<KvSizing> size_kv_cache(const EngineOptions& options, const ModelConfig& config,
                               Backend backend, std::int64_t available_bytes);

}  // namespace pagoda
