#include "kv/prefix_scope.h"

#include <span>

namespace pagoda {
namespace {

Sha256Digest child(const Sha256Digest& parent, std::string_view name) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(parent)));
  hash.update(name);
  return hash.finish();
}

}  // namespace

// Hashes the owner apart from the salt. So no salt without an owner gives the digest of an owner
// and a salt.
PrefixScope prefix_scope(const Sha256Digest& model, std::string_view owner, std::string_view salt) {
  PrefixScope scope = {.owner = owner.empty() ? model : child(model, owner),
                       .is_salted = !salt.empty()};
  scope.digest = child(scope.owner, salt);
  return scope;
}

}  // namespace pagoda
