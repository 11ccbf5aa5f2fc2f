// A profile of a model's ops (tensor/op_profile.h) as a table for people and as JSON.
#pragma once

#include <string>

#include "cli/bench/machine_limits.h"
#include "core/ordered_json.h"

namespace pagoda {

class OpProfile;

// Returns a table with a block per phase and a line per op: calls, milliseconds, share of the
// phase's time, megabytes read, GB/s, their share of the read limit, products and their share of
// the dot-product limit. The last line of a block is the steps' time outside ops. Ends with a
// newline; empty if no step was run.
std::string op_profile_table(const OpProfile& profile, const MachineLimits& limits);

// Returns [{"phase", "op", "rows", "cols", "format", "calls", "seconds", "time_share",
// "read_bytes", "read_gb_per_s", "read_share", "gmac_per_s"}]. An op has rows, cols and format if
// it has a weight, and gmac_per_s if it sums products. Time outside ops is the op "outside ops".
OrderedJson op_profile_json(const OpProfile& profile, const MachineLimits& limits);

}  // namespace pagoda
