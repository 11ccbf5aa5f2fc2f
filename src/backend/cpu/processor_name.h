// The processor that this process runs on, by name.
#pragma once

#include <string>

namespace pagoda {

// Returns what the processor calls itself and its signature (family, model and stepping), as in
// "AMD EPYC 00a00f11"; "unknown" where nobody says. Thread-safe.
std::string processor_name();

}  // namespace pagoda
