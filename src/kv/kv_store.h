// KvStore: the memory of all layers' keys and values. BlockPool and the scheduler decide which
// sequence has which block.
//
// Paged and contiguous caches differ only in KvLayout::block_size. kv_write returns a view whose
// arrays depend on the write. On a lazy backend this dependency orders writes and reads, and
// rebind() keeps it. Belongs to the engine thread.
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
  // Allocates each lane's keys and values, zeroed, with the layout of batch/kv_view.h.
  // kInvalidArgument: an extent is not positive, or the size overflows. kUnsupported: an entry is
  // not a whole number of bytes. kResourceExhausted: there is too little memory.
  static Result<KvStore> create(Exec& exec, KvLayout layout, int num_blocks);

  const KvView& view(int layer) const { return views_[view_of_[layer]]; }
  // Makes `layer`, and the layers that share its memory, use `view`, which kv_write has returned.
  // REQUIRES: its arrays have the layer's shapes and dtypes.
  void rebind(int layer, const KvView& view) { rebind_view(view_of_[layer], view); }
  // Returns the views that a lazy backend has to evaluate in a step: for each lane, one per form of
  // its layers.
  const std::vector<KvView>& views() const { return views_; }
  void rebind_view(int index, const KvView& view);
  // Returns how many blocks of a view make one block of the pool.
  int num_parts(int index) const {
    return static_cast<int>(views_[index].num_blocks() / num_blocks_);
  }

  // Lets `exec` page in the memory of num_slots slots from first_slot on before they are written
  // (Exec::prefault). A call takes at most kPrefaultBytes of one view's keys or values, so that it
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
  // Slots below num_prefaulted_slots_ are prefaulted in all arrays. The next
  // slots_prefaulted_together_ slots are prefaulted in the first num_prefaulted_arrays_ arrays.
  std::int64_t num_prefaulted_slots_ = 0;
  int num_prefaulted_arrays_ = 0;
};

}  // namespace pagoda
