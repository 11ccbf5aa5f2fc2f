#include "tests/support/source_path.h"

namespace pagoda::testing {

std::string source_path(std::string_view from_root) {
  return PAGODA_SOURCE_DIR "/" + std::string(from_root);
}

}  // namespace pagoda::testing
