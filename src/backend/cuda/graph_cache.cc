#include "backend/cuda/graph_cache.h"

#include <algorithm>

namespace pagoda::cuda {
namespace {

// A step's list differs in the places of its results and of what is uploaded, which come around
// after a few steps; and there is one for each number of sequences.
constexpr std::size_t kMostEntries = 64;

}  // namespace

GraphCache::~GraphCache() {
  device_->make_current();
  for (const Entry& entry : entries_) drop(entry);
}

void GraphCache::drop(const Entry& entry) {
  if (entry.graph != nullptr) (void)device_->driver().destroy_graph_exec(entry.graph);
}

Status GraphCache::submit(const LaunchList& list, CuStream* stream) {
  const Driver& driver = device_->driver();
  if (!list.fits_a_graph()) return list.submit(driver, stream);
  const std::uint64_t hash = list.hash();
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.hash == hash && entry.list == list;
  });
  if (found == entries_.end()) {
    if (entries_.size() == kMostEntries) {
      drop(entries_.back());
      entries_.pop_back();
    }
    entries_.push_front({.hash = hash, .list = list});
    return list.submit(driver, stream);
  }
  entries_.splice(entries_.begin(), entries_, found);
  if (found->graph == nullptr) PAGODA_RETURN_IF_ERROR(capture(*found, stream));
  ++num_graph_launches_;
  return driver.status_of(driver.launch_graph(found->graph, stream), "launching a graph");
}

Status GraphCache::capture(Entry& entry, CuStream* stream) {
  const Driver& driver = device_->driver();
  const auto expect = [&](CuResult result) { return driver.status_of(result, "making a graph"); };
  PAGODA_RETURN_IF_ERROR(expect(driver.begin_capture(stream, kCuCaptureRelaxed)));
  Status status = entry.list.submit(driver, stream);
  CuGraph* graph = nullptr;
  const Status captured = expect(driver.end_capture(stream, &graph));
  if (status.ok()) status = captured;
  if (status.ok()) status = expect(driver.instantiate_graph(&entry.graph, graph, 0));
  if (graph != nullptr) (void)driver.destroy_graph(graph);
  return status;
}

}  // namespace pagoda::cuda
