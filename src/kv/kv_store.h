// KvStore: the memory of all layers' keys and values; which block is whose is BlockPool's and the
// scheduler's.
//
// One store for paged and contiguous caches alike: they differ by KvLayout::block_size. kv_write
// returns a view whose arrays stand after the write; on a lazy backend that edge orders writes and
// reads, and rebind() keeps it. Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/kv_view.h"
#include "core/status.h"
#include "kv/kv_layout.h"
#include "tensor/exec.h"

namespace pagoda {

class KvStore {
 public:
  // Allocates each lane's keys and values as batch/kv_view.h draws them, zeroed. kInvalidArgument
  // where an extent isn't positive or the bytes overflow; kUnsupported where an entry has no whole
  // number of bytes; the Exec's kResourceExhausted where there is too little memory.
  static Result<KvStore> create(Exec& exec, KvLayout layout, int num_blocks);

  const KvView& view(int layer) const { return views_[view_of_[layer]]; }
  // Reads `layer`, and those that share its memory, through `view`, which kv_write returned, from
  // now on. Its arrays' shapes and dtypes stay those of the layer.
  void rebind(int layer, const KvView& view) { rebind_view(view_of_[layer], view); }
  // Returns the arrays that a lazy backend has to evaluate in a step: every lane's, seen in each
  // form that layers have there.
  const std::vector<KvView>& views() const { return views_; }
  void rebind_view(int index, const KvView& view);
  // Returns how many blocks of a view a block of the pool is.
  int num_parts(int index) const {
    return static_cast<int>(views_[index].num_blocks() / num_blocks_);
  }

  // Has `exec` give the memory of num_slots slots from first_slot on before they are written
  // (Exec::prefault): at most kPrefaultBytes of one view's keys or values a call, so that a call
  // is short. False: nothing was left to do.
  static constexpr std::int64_t kPrefaultBytes = 1 << 20;
  bool prefault(Exec& exec, std::int64_t first_slot, std::int64_t num_slots);

  const KvLayout& layout() const { return layout_; }
  int num_views() const { return static_cast<int>(views_.size()); }
  int num_blocks() const { return num_blocks_; }
  int block_size() const { return layout_.block_size; }
  std::int64_t num_bytes() const { return layout_.bytes_per_block() * num_blocks_; }

 private:
  KvStore(KvLayout layout, int num_blocks);
  Status add_layer(Exec& exec, int layer);

  KvLayout layout_;
  int num_blocks_ = 0;
  int num_lanes_ = 0;
  std::vector<KvView> views_;
  std::vector<int> view_of_;  // [num_layers]
  std::int64_t slots_prefaulted_together_ = 0;
  // Slots below this have been prefaulted, those that follow, as many as go together, in so many
  // of each view's keys and values.
  std::int64_t num_prefaulted_slots_ = 0;
  int num_prefaulted_arrays_ = 0;
};

}  // namespace pagoda
