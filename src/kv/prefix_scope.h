// PrefixScope: whose cached blocks a request shares. Blocks are shared within an owner and a salt.
#pragma once

#include <string_view>

#include "core/sha256.h"

namespace pagoda {

struct PrefixScope {
  Sha256Digest owner = {};   // of the model and the owner's name
  Sha256Digest digest = {};  // of those and the salt: the parent of a prompt's first block
};

// Returns the scope of an owner and a salt. owner: "" where requests have none. model: what else a
// block's bytes depend on. The digests of a prompt's blocks in a scope can be told from the scope's
// digest, and not without it.
PrefixScope prefix_scope(const Sha256Digest& model, std::string_view owner, std::string_view salt);

}  // namespace pagoda
