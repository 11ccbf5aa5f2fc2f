// Staging: pinned memory of the host, through which values go to the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/device.h"
#include "core/status.h"

namespace pagoda::cuda {

// Memory is taken for transfers that are recorded, and is taken again once the evaluation that made
// them is done. Not thread-safe.
class Staging {
 public:
  explicit Staging(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns `bytes`, their values undefined, at a multiple of 64 bytes. kResourceExhausted if the
  // system refuses to pin more.
  Result<std::byte*> take(std::size_t bytes);
  // Returns how much has been taken since the last hand_over().
  std::size_t taken_bytes() const { return taken_bytes_; }
  // Gives all that was taken to this evaluation.
  void hand_over(std::uint64_t evaluation);
  // Evaluations up to this one are done.
  void set_done(std::uint64_t evaluation);

 private:
  struct Block {
    std::byte* base = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::uint64_t evaluation = 0;  // which reads it
  };

  std::shared_ptr<Device> device_;
  std::vector<Block> open_;       // taken from; the last one has room
  std::vector<Block> in_flight_;  // by evaluation
  std::vector<Block> free_;
  std::size_t taken_bytes_ = 0;
};

}  // namespace pagoda::cuda
