#include "text/stop_strings.h"

#include <limits>

namespace pagoda {

Result<StopStrings> StopStrings::create(std::span<const std::string> strings) {
  size_t num_bytes = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty())
      return invalid_argument("[stop] stop[{}]: expected a string that is not empty", i);
    num_bytes += strings[i].size();
  }
  if (num_bytes >= static_cast<size_t>(std::numeric_limits<int>::max())) {
    return invalid_argument("[stop] expected less than 2 GiB of stop strings, got {} bytes",
                            num_bytes);
  }
  StopStrings result;
  for (const std::string& string : strings) result.add(string);
  result.link();
  return result;
}

int StopStrings::child(int node, char byte) const {
  int next = nodes_[node].first_child;
  while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].next_sibling;
  return next;
}

int StopStrings::step(int node, char byte) const {
  int next = child(node, byte);
  while (next == 0 && node != 0) {
    node = nodes_[node].fallback;
    next = child(node, byte);
  }
  return next;
}

void StopStrings::add(std::string_view string) {
  int node = 0;
  for (const char byte : string) {
    int next = child(node, byte);
    if (next == 0) {
      next = static_cast<int>(nodes_.size());
      nodes_.push_back({.length = nodes_[node].length + 1,
                        .next_sibling = nodes_[node].first_child,
                        .byte = byte});
      nodes_[node].first_child = next;
    }
    node = next;
  }
  nodes_[node].match = nodes_[node].length;
}

// Links each node to its fallback. Breadth first, because a fallback is shorter than its node and
// so must be linked before.
void StopStrings::link() {
  std::vector<int> queue = {0};
  for (size_t i = 0; i < queue.size(); ++i) {
    const int parent = queue[i];
    for (int node = nodes_[parent].first_child; node != 0; node = nodes_[node].next_sibling) {
      if (parent != 0) nodes_[node].fallback = step(nodes_[parent].fallback, nodes_[node].byte);
      if (nodes_[node].match == 0) nodes_[node].match = nodes_[nodes_[node].fallback].match;
      queue.push_back(node);
    }
  }
}

StopStringMatcher::Output StopStringMatcher::push(std::string_view text) {
  if (stopped_) return {.text = "", .stopped = true};
  for (size_t i = 0; i < text.size(); ++i) {
    state_ = strings_->step(state_, text[i]);
    const int match = strings_->nodes_[state_].match;
    if (match == 0) continue;
    stopped_ = true;
    held_.append(text.substr(0, i + 1));
    if (!include_stop_) held_.resize(held_.size() - match);
    return {.text = std::move(held_), .stopped = true};
  }
  held_.append(text);
  const size_t num_shown = held_.size() - strings_->nodes_[state_].length;
  Output output = {.text = held_.substr(0, num_shown), .stopped = false};
  held_.erase(0, num_shown);
  return output;
}

std::string StopStringMatcher::flush() {
  state_ = 0;
  return std::exchange(held_, {});
}

}  // namespace pagoda
