#include "server/generation/request_trace.h"

#include <algorithm>

#include "server/generation/answer_json.h"

namespace pagoda {
namespace {

// The most samples of a request that are reported one by one.
constexpr std::size_t kMaxToldSamples = 32;

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_lower_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

// The header VERSION-TRACE-PARENT-FLAGS, in 2, 32, 16 and 2 hexadecimal digits. Versions after 00
// may have more after another dash.
struct TraceParent {
  std::string_view trace_id, parent_id;
  bool is_kept = false;  // whether the client records this trace
};

bool read_trace_parent(std::string_view text, TraceParent& parent) {
  constexpr std::size_t kTrace = 3, kParent = 36, kFlags = 53, kEnd = 55;
  if (text.size() < kEnd || text[kTrace - 1] != '-' || text[kParent - 1] != '-' ||
      text[kFlags - 1] != '-')
    return false;
  const std::string_view version = text.substr(0, 2), flags = text.substr(kFlags, 2);
  parent.trace_id = text.substr(kTrace, kParent - kTrace - 1);
  parent.parent_id = text.substr(kParent, kFlags - kParent - 1);
  if (!is_lower_hex(version) || version == "ff" || !is_lower_hex(flags)) return false;
  if (text.size() > kEnd && (version == "00" || text[kEnd] != '-')) return false;
  parent.is_kept = (flags[1] >= 'a' ? flags[1] - 'a' + 10 : flags[1] - '0') % 2 == 1;
  return is_id(parent.trace_id) && is_id(parent.parent_id);
}

}  // namespace

std::shared_ptr<RequestTrace> RequestTrace::begin(std::string_view traceparent) {
  std::shared_ptr<RequestTrace> trace(new RequestTrace());
  if (TraceParent parent; read_trace_parent(traceparent, parent)) {
    if (!parent.is_kept) return nullptr;
    trace->trace_id_ = parent.trace_id;
    trace->parent_id_ = parent.parent_id;
  } else {
    trace->trace_id_ = random_hex_digits();
  }
  return trace;
}

void RequestTrace::add(const Sample& sample) {
  std::lock_guard lock(mutex_);
  if (samples_.size() < kMaxToldSamples) samples_.push_back(sample);
}

std::vector<RequestTrace::Sample> RequestTrace::samples() const {
  std::lock_guard lock(mutex_);
  return samples_;
}

}  // namespace pagoda
