// GraphCache: graphs of the lists of launches that come again. One call launches a graph. It costs
// the host less than the calls of all kernels, and the GPU starts the kernels faster.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "backend/cuda/launch_list.h"

namespace pagoda::cuda {

// A list that comes for the second time is captured. The graphs that were used least recently leave
// when there are too many. Not thread-safe.
class GraphCache {
 public:
  explicit GraphCache(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Gives the list to the stream: as a graph, if it has come before and fits one.
  Status submit(const LaunchList& list, CuStream* stream);

  std::uint64_t num_graph_launches() const { return num_graph_launches_; }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    LaunchList list;
    CuGraphExec* graph = nullptr;  // null: it has come once
  };
  Status capture(Entry& entry, CuStream* stream);
  void drop(const Entry& entry);

  std::shared_ptr<Device> device_;
  std::list<Entry> entries_;  // the one used last first
  std::uint64_t num_graph_launches_ = 0;
};

}  // namespace pagoda::cuda
