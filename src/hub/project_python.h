#pragma once

namespace pagoda {

// Returns the path of the Python interpreter that tools/setup.sh has made for this checkout. It may
// not be there any more. Thread-safe.
const char* project_python();

}  // namespace pagoda
