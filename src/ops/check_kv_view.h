// A check that ops on the cache share.
#pragma once

#include <string_view>

#include "batch/kv_view.h"

namespace pagoda {

// Checks that keys and values are contiguous, of one shape apart from their formats, and that codes
// have their scales.
void check_kv_view(std::string_view op, const KvView& view);

}  // namespace pagoda
