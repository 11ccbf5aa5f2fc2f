#include "cli/base/report_error.h"

#include <cstdio>

#include "cli/base/command.h"

namespace pagoda {

int report_error(const Status& status) {
  std::fprintf(stderr, "pagoda: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace pagoda
