// PrefixScope: decides which requests share cached blocks: those with the same owner and the same
// salt.
#pragma once

#include <string_view>

#include "core/sha256.h"

namespace pagoda {

struct PrefixScope {
  Sha256Digest owner = {};   // digest of the model and the owner's name
  Sha256Digest digest = {};  // digest of `owner` and the salt: the parent of a prompt's first block
  bool is_salted = false;
};

// Returns the scope of an owner and a salt. owner: "" if requests have none. model: what else a
// block's bytes depend on. The digests of a prompt's blocks can be computed from the scope's
// digest, and not without it.
PrefixScope prefix_scope(const Sha256Digest& model, std::string_view owner, std::string_view salt);

}  // namespace pagoda
