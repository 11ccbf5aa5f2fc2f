#include "tests/metal/stand_in_rules.h"

#include <algorithm>

namespace pagoda::mlx::stand_in {

void EncoderRules::begin_operation() {
  if (ops_ > limits_.max_ops || elements_ >> 20 > limits_.max_megabytes) {
    commit();
  } else if (num_dispatches_ >= limits_.dispatches_per_encoder) {
    end_encoder();
  }
}

void EncoderRules::commit() {
  end_encoder();
  if (ops_ > 0) ++counts_.command_buffers;
  ops_ = 0;
  elements_ = 0;
}

void EncoderRules::end_encoder() {
  if (!is_open_) return;
  for (const void* buffer : written_) last_writer_[buffer] = encoder_;
  is_open_ = false;
  num_dispatches_ = 0;
  epoch_ = 0;
  named_since_barrier_.clear();
  written_since_barrier_.clear();
  named_.clear();
  written_.clear();
}

Place EncoderRules::place_dispatch(std::span<const Use> uses) {
  if (!is_open_) {
    is_open_ = true;
    ++encoder_;
    ++counts_.encoders;
  }
  const bool needs_barrier = std::ranges::any_of(uses, [this](const Use& use) {
    return written_since_barrier_.contains(use.buffer) ||
           (use.is_written && named_since_barrier_.contains(use.buffer));
  });
  if (needs_barrier) {
    ++epoch_;
    ++counts_.barriers;
    named_since_barrier_.clear();
    written_since_barrier_.clear();
  }
  Place place{.encoder = encoder_, .epoch = epoch_, .waits = {}};
  for (const Use& use : uses) {
    named_since_barrier_.insert(use.buffer);
    if (use.is_written) written_since_barrier_.insert(use.buffer);
    if (named_.insert(use.buffer).second) elements_ += use.num_elements;
    if (use.is_temporary) continue;
    if (use.is_written) written_.insert(use.buffer);
    const auto writer = last_writer_.find(use.buffer);
    if (writer != last_writer_.end()) place.waits.push_back(writer->second);
  }
  ++num_dispatches_;
  ++ops_;
  return place;
}

}  // namespace pagoda::mlx::stand_in
