// The name of the processor that this process runs on.
#pragma once

#include <string>

namespace pagoda {

// Returns the processor's own name and its signature (family, model and stepping), as in "AMD EPYC
// 00a00f11"; "unknown" on a processor that is not x86. Thread-safe.
std::string processor_name();

}  // namespace pagoda
