// MaskPrefetcher: threads that compute masks ahead, from the moment that a source has accepted a
// token, where the source's mask before took long. The engine's thread goes on with the next
// forward meanwhile. It computes a mask itself that is not begun when it asks for it, or that is
// quicker than waking a thread is.
//
// Masks of sources whose last one took longer than 3 ms have threads of their own, one a core and
// eight at most. These give way to the engine's: only samples with such masks wait.
#pragma once

#include <memory>

#include "core/token_mask_source.h"

namespace pagoda {

// Thread-safe; threads start when there is something for them. Where the system has none left,
// masks are computed when they are asked for. Sources may outlive it, and then
// compute their masks when they are asked.
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
