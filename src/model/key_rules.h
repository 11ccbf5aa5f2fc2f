// The handling of each key of a JSON file beside a checkpoint's weights, as rows of a table: read,
// harmless, or refused by name. A key without a row may change what a model computes, so it is
// refused too.
#pragma once

#include <span>
#include <string_view>

#include "core/status.h"
#include "model/family.h"
#include "model/hf/json_fields.h"

namespace pagoda {

enum class HfRule {
  kRead,      // by the file's reader
  kHarmless,  // changes nothing that this engine computes, or repeats what tensors show
  kOnly,      // harmless as long as it has one of the values in `values`
};

struct HfKeyRule {
  std::string_view key;  // a '*' at the end matches any rest
  HfRule rule;
  std::string_view values = "[]";  // of kOnly, a JSON array; null is always one of them
};

// Keys outside of a table.
struct OtherKeys {
  std::span<const HfKeyRule> more = {};  // looked up next; their rows of kRead do not count
  const Family* family = nullptr;        // its own keys are allowed; null: no family
};

// Checks each key by the first row that matches it. kUnsupported names the file and a key that
// would change what the model computes, or that has no row.
Status check_keys(const JsonFields& fields, std::span<const HfKeyRule> rows,
                  const OtherKeys& others = {});

}  // namespace pagoda
