// A check that ops on the KV cache share.
#pragma once

#include <string_view>

#include "batch/kv_view.h"

namespace pagoda {

// Checks that keys and values are contiguous and have the same shape, except that formats may
// differ. Formats with scales must have them, and in the right shape.
void check_kv_view(std::string_view op, const KvView& view);

}  // namespace pagoda
