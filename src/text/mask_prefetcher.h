// MaskPrefetcher: threads that compute the next mask as soon as a source has accepted a token, if
// the source's previous mask took long. Meanwhile the engine's thread continues with the next
// forward. It computes a mask itself if no thread has begun it, or if that is quicker than waking a
// thread.
//
// Sources whose last mask took longer than 3 ms use a second group of threads, one per core and at
// most eight. These run at a lower priority than the engine's, so that only samples with such masks
// wait.
#pragma once

#include <memory>

#include "core/token_mask_source.h"

namespace pagoda {

// Thread-safe; threads start when they are needed. If the system has no thread left, a mask is
// computed when it is asked for. So are the masks of sources that outlive the prefetcher.
class MaskPrefetcher {
 public:
  MaskPrefetcher();
  ~MaskPrefetcher();
  MaskPrefetcher(const MaskPrefetcher&) = delete;
  MaskPrefetcher& operator=(const MaskPrefetcher&) = delete;

  // Wraps a source; the result gives the same masks and errors as `source`.
  std::unique_ptr<TokenMaskSource> wrap(std::unique_ptr<TokenMaskSource> source);

 private:
  friend class PrefetchingMaskSource;
  struct Job;
  struct Queue;

  std::shared_ptr<Queue> queue_;
};

}  // namespace pagoda
