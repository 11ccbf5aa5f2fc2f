// The order that MLX gives to dispatches on a Metal queue, and what it leaves open.
//
// MLX's encoders are concurrent, and its buffers untracked: what waits for what is MLX's own doing
// (mlx/backend/metal/device.cpp, 0.32). It sees whole buffers, by their addresses.
// - Within an encoder a barrier comes before a dispatch that names a buffer written since the last
//   barrier, or writes one that was named since.
// - An encoder waits for the last earlier one that wrote any buffer that it names: after a write
//   come reads and writes. After a read nothing is kept in order: a later encoder's write may come
//   before it.
// - A launch's scratch does not leave its encoder, so encoders do not wait for it.
// - An encoder ends where MLX commits its command buffer: after an operation that takes it past its
//   bound of dispatches or inputs, and at an evaluation's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/mlx/gpu_limits.h"

namespace pagoda::mlx::stand_in {

// A buffer as a dispatch names it.
struct Use {
  const void* buffer = nullptr;
  std::size_t num_elements = 0;
  bool is_written = false;
  bool is_temporary = false;
};

// Where a dispatch stands.
struct Place {
  std::uint64_t encoder = 0;         // from 1, in order
  int epoch = 0;                     // barriers of the encoder before it
  std::vector<std::uint64_t> waits;  // encoders that this one waits for, as far as is known
};

struct EncoderLimits {
  int dispatches_per_encoder = 1000;  // the stand-in's own: encoders end early, too
  int max_ops = kMaxOps;              // of a command buffer: what the product sets
  std::size_t max_megabytes =
      kMaxMegabytes;  // counted by MLX in elements, a buffer once an encoder
};

struct EncoderCounts {
  std::uint64_t barriers = 0;
  std::uint64_t encoders = 0;
  std::uint64_t command_buffers = 0;
};

class EncoderRules {
 public:
  explicit EncoderRules(EncoderLimits limits) : limits_(limits) {}

  // Ends what the operation before has filled.
  void begin_operation();
  // Ends the encoder and its command buffer, as at an evaluation's end.
  void commit();
  Place place_dispatch(std::span<const Use> uses);

  const EncoderCounts& counts() const { return counts_; }

 private:
  void end_encoder();

  EncoderLimits limits_;
  EncoderCounts counts_;
  int ops_ = 0;  // of the command buffer
  std::size_t elements_ = 0;

  // The open encoder's.
  std::uint64_t encoder_ = 0;
  bool is_open_ = false;
  int num_dispatches_ = 0;
  int epoch_ = 0;
  std::unordered_set<const void*> named_since_barrier_;
  std::unordered_set<const void*> written_since_barrier_;
  std::unordered_set<const void*> named_;
  std::unordered_set<const void*> written_;

  std::unordered_map<const void*, std::uint64_t> last_writer_;  // an ended encoder, of each buffer
};

}  // namespace pagoda::mlx::stand_in
