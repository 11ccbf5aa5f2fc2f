// Records the dispatches that metal_dispatch.cc encodes, with a recorder per MLX command encoder.
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

// Metal's own types. MLX uses only pointers to them.
namespace MTL {

class Library {
 public:
  std::string name;
  std::string text;
};

class ComputePipelineState {
 public:
  std::string name;  // name of the binary
};

}  // namespace MTL

namespace pagoda::mlx::stand_in {

// Closes all windows, so that recorded dispatches run: MLX waits for them before it passes the
// error on. Then throws std::runtime_error.
[[noreturn]] void refuse(std::string_view why);

// Used only by the thread of its stream.
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
  // Records a dispatch. Throws std::runtime_error if it is refused.
  void dispatch(MTL::Size num_groups, MTL::Size num_threads);

  // Ends the encoder and its command buffer.
  void commit();

 private:
  // A dispatch that is being encoded.
  struct Next {
    Command command;
    std::vector<std::uintptr_t> outputs;  // arrays' identities
    mx::Event event;                      // of the evaluation; none if the evaluation blocks
    bool has_output = false;              // has an output, so that `event` is set
    bool is_foreign = false;              // uses an array that MLX's own operations compute
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
  std::uint64_t generation_ = 0;  // version of the options
  EncoderRules rules_;
  EncoderCounts published_;
  std::shared_ptr<Window> window_;
  std::size_t window_size_ = 0;
  std::uint64_t num_windows_ = 0;

  Next next_;
  bool begins_launch_ = false;           // no dispatch of the launch is recorded yet
  std::vector<std::uintptr_t> results_;  // identities of the arrays that the launch has made so far
  std::vector<std::weak_ptr<mx::array::Data>> temporaries_;  // scratch of the launch
  mx::Event event_;                                          // the last evaluation's
  // The memory that dispatches have written: by the arrays' identities, and by its address.
  std::unordered_map<std::uintptr_t, std::weak_ptr<mx::array::Data>> written_arrays_;
  std::unordered_map<const mx::array::Data*, std::weak_ptr<mx::array::Data>> written_memory_;
};

// Returns the recorder of the calling thread's CPU stream with this index.
std::shared_ptr<Recorder> recorder_of_stream(int index);

// Counts a text that the compiler gets.
void count_library();

}  // namespace pagoda::mlx::stand_in
