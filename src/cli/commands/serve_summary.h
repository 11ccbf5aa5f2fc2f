// The lines of the log that say what `pagoda serve` has chosen, and why.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/flags/engine_flags.h"
#include "serving/served_model.h"

namespace pagoda {

struct ServeSummary {
  const EngineFlags& flags;
  const ServedModel& model;
  std::vector<std::string> names;  // the model's, in the API
  std::size_t num_keys = 0;
  std::string page;  // the page's address
};

// Returns a line each for the model, the device, the context, the KV cache, the keys and the page.
std::vector<std::string> lines_of(const ServeSummary& summary);

}  // namespace pagoda
