// The fate of each key of a JSON file beside a checkpoint's weights, as rows of a table: it is read,
// harmless, or refused by name. A key that has no row may change what a model computes, so it is
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
  kHarmless,  // changes nothing that this engine computes, or what tensors tell by themselves
  kOnly,      // harmless as long as it has one of the values in `values`
};

struct HfKeyRule {
  std::string_view key;  // a '*' at the end stands for any rest
  HfRule rule;
  std::string_view values = "[]";  // of kOnly, a JSON array; null is always one of them
};

// Keys that a table leaves to others.
struct OtherKeys {
  std::span<const HfKeyRule> more = {};  // looked up next; what they say is read is not read here
  const Family* family = nullptr;        // its own keys are read; null: there is none
};

// Checks each key by the first row that is about it. kUnsupported names the file and a key that
// would change what the model computes, or that has no row.
Status check_keys(const JsonFields& fields, std::span<const HfKeyRule> rows,
                  const OtherKeys& others = {});

}  // namespace pagoda
