#include "core/version.h"

namespace pagoda {

std::string_view version() {
  return PAGODA_VERSION;
}

}  // namespace pagoda
