#pragma once

namespace pagoda {

// Returns the path of the Python interpreter that tools/setup.sh has made for this checkout. It may
// have been removed since. Thread-safe.
const char* project_python();

}  // namespace pagoda
