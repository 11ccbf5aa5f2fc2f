// PrefixScope: whose cached blocks a request shares. Blocks are shared within an owner and a salt.
#pragma once

#include <string_view>

#include "core/sha256.h"

namespace pagoda {

struct PrefixScope {
  Sha256Digest owner = {};   // of the model and the owner's name
  Sha256Digest digest = {};  // of those and the salt: the parent of a prompt's first block
};

// Returns the scope of an owner, "" where requests are nobody's, and a salt. model: what else a block's
// bytes depend on. Who knows a scope's digest can tell the digests of any prompt's blocks in it, and
// nobody else can.
PrefixScope prefix_scope(const Sha256Digest& model, std::string_view owner, std::string_view salt);

}  // namespace pagoda
