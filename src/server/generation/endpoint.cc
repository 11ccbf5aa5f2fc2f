#include "server/generation/endpoint.h"

namespace pagoda {

std::string_view Endpoint::parameter() const {
  if (!path.ends_with('}')) return "";
  const std::size_t begin = path.rfind('{') + 1;
  return path.substr(begin, path.size() - 1 - begin);
}

}  // namespace pagoda
