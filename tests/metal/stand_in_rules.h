// The order that MLX guarantees to dispatches on a Metal queue. Other dispatches may run in any
// order.
//
// MLX's encoders are concurrent, and Metal does not track its buffers: MLX itself makes dispatches
// wait (mlx/backend/metal/device.cpp, 0.32). It considers whole buffers, by their addresses.
// - Within an encoder a barrier comes before a dispatch that names a buffer written since the last
//   barrier, or that writes a buffer named since the last barrier.
// - An encoder waits, for each buffer that it names, for the last earlier encoder that wrote it. So
//   reads and writes come after an earlier write. But a write does not wait for a read of an
//   earlier encoder: it may come before that read.
// - A launch's scratch is used only in its encoder, so encoders do not wait for it.
// - An encoder ends when MLX commits its command buffer: after an operation that exceeds the bound
//   of dispatches or inputs, and at an evaluation's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/mlx/gpu_limits.h"

namespace pagoda::mlx::stand_in {

// A buffer that a dispatch names, and how it uses the buffer.
struct Use {
  const void* buffer = nullptr;
  std::size_t num_elements = 0;
  bool is_written = false;
  bool is_temporary = false;
};

// The place of a dispatch in the queue.
struct Place {
  std::uint64_t encoder = 0;         // from 1, in order
  int epoch = 0;                     // number of the encoder's barriers before the dispatch
  std::vector<std::uint64_t> waits;  // encoders that its encoder waits for, as known so far
};

struct EncoderLimits {
  int dispatches_per_encoder = 1000;          // the stand-in's own limit, to end encoders early
  int max_ops = kMaxOps;                      // per command buffer, as set by prepare_gpu()
  std::size_t max_megabytes = kMaxMegabytes;  // MLX counts elements, each buffer once per encoder
};

struct EncoderCounts {
  std::uint64_t barriers = 0;
  std::uint64_t encoders = 0;
  std::uint64_t command_buffers = 0;
};

class EncoderRules {
 public:
  explicit EncoderRules(EncoderLimits limits) : limits_(limits) {}

  // Ends the command buffer or the encoder if the previous operation has filled it.
  void begin_operation();
  // Ends the encoder and its command buffer, as at an evaluation's end.
  void commit();
  Place place_dispatch(std::span<const Use> uses);

  const EncoderCounts& counts() const { return counts_; }

 private:
  void end_encoder();

  EncoderLimits limits_;
  EncoderCounts counts_;
  int ops_ = 0;  // in the command buffer
  std::size_t elements_ = 0;

  // The state of the open encoder.
  std::uint64_t encoder_ = 0;
  bool is_open_ = false;
  int num_dispatches_ = 0;
  int epoch_ = 0;
  std::unordered_set<const void*> named_since_barrier_;
  std::unordered_set<const void*> written_since_barrier_;
  std::unordered_set<const void*> named_;
  std::unordered_set<const void*> written_;

  std::unordered_map<const void*, std::uint64_t> last_writer_;  // the last ended one, per buffer
};

}  // namespace pagoda::mlx::stand_in
