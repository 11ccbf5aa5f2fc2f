// MaskPrefetcher: a thread that computes masks ahead, from the moment that a source has accepted a
// token, where the source's mask before took long. The engine's thread goes on with the next
// forward meanwhile; what is not done when it asks for a mask, it computes itself, and so it does
// where a mask is quicker than waking the thread is.
#pragma once

#include <memory>
#include <thread>

#include "core/token_mask_source.h"

namespace pagoda {

// Thread-safe; the thread starts with the first mask that is asked of it. Sources may outlive it,
// and then compute their masks when they are asked.
class MaskPrefetcher {
 public:
  MaskPrefetcher();
  ~MaskPrefetcher();
  MaskPrefetcher(const MaskPrefetcher&) = delete;
  MaskPrefetcher& operator=(const MaskPrefetcher&) = delete;

  // Says what `source` says.
  std::unique_ptr<TokenMaskSource> wrap(std::unique_ptr<TokenMaskSource> source);

 private:
  friend class PrefetchingMaskSource;
  struct Job;
  struct Queue;

  std::shared_ptr<Queue> queue_;
};

}  // namespace pagoda
