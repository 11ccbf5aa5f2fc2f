// Records what metal_dispatch.cc encodes: one recorder for each of MLX's command encoders.
#pragma once

#include <mlx/array.h>
#include <mlx/event.h>
#include <Metal/Metal.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/metal/stand_in.h"
#include "tests/metal/stand_in_rules.h"
#include "tests/metal/stand_in_window.h"

// Metal's own types, of which MLX hands out pointers alone.
namespace MTL {

class Library {
 public:
  std::string name;
  std::string text;
};

class ComputePipelineState {
 public:
  std::string name;  // of the binary
};

}  // namespace MTL

namespace pagoda::mlx::stand_in {

// Throws std::runtime_error. What was recorded runs: MLX waits for it before it passes the error on.
[[noreturn]] void refuse(std::string_view why);

// Belongs to the thread of its stream.
class Recorder final : public MTL::ComputeCommandEncoder {
 public:
  explicit Recorder(mx::Stream stream);
  ~Recorder() override;

  // Begins the launch of an op.
  void begin_launch();
  void add_temporary(const mx::array& array);
  void bind(const mx::array& array, int index, std::int64_t byte_offset, bool is_output);
  void setComputePipelineState(const MTL::ComputePipelineState* pipeline) override;
  void setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) override;
  void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) override;
  // Throws std::runtime_error where the dispatch is refused.
  void dispatch(MTL::Size num_groups, MTL::Size num_threads);

  // Ends the encoder and its command buffer.
  void commit();

 private:
  // A dispatch while it is encoded.
  struct Next {
    Command command;
    std::vector<std::uintptr_t> outputs;  // arrays' identities
    mx::Event event;                      // of the evaluation; none while it blocks
    bool has_output = false;              // so that `event` is known
    bool is_foreign = false;              // names what MLX's own operations compute
  };

  void start(const Options& options);
  void close_window();
  void record(const Next& next);
  std::uint64_t count_results(const Next& next);
  void publish_counts();
  bool is_temporary(const mx::array& array) const;
  bool is_written_here(const mx::array& array) const;

  const mx::Stream stream_;
  Options options_;
  std::uint64_t generation_ = 0;  // of the options
  EncoderRules rules_;
  EncoderCounts published_;
  std::shared_ptr<Window> window_;
  std::size_t window_size_ = 0;
  std::uint64_t num_windows_ = 0;

  Next next_;
  bool begins_launch_ = false;           // no dispatch of the launch was recorded
  std::vector<std::uintptr_t> results_;  // arrays' identities: what the launch has made so far
  std::vector<std::weak_ptr<mx::array::Data>> temporaries_;  // of the launch
  mx::Event event_;                                          // of the evaluation before
  // Arrays that dispatches have written, by their identity, and each one's memory; and such memory.
  std::unordered_map<std::uintptr_t, std::weak_ptr<mx::array::Data>> written_arrays_;
  std::unordered_map<const mx::array::Data*, std::weak_ptr<mx::array::Data>> written_memory_;
};

// Returns the recorder of a CPU stream of the calling thread, by its index.
std::shared_ptr<Recorder> recorder_of_stream(int index);

// Counts a text that the compiler was given.
void count_library();

}  // namespace pagoda::mlx::stand_in
