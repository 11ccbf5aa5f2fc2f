#include "hub/project_python.h"

namespace pagoda {

const char* project_python() {
  return PAGODA_PYTHON;
}

}  // namespace pagoda
