// The experts that a backend chooses, recorded call by call, and replayed on another backend.
//
// A choice between two nearly equal experts may go the other way if the router's input is rounded in
// another way. Then all later positions differ. With the same choices backends can be compared
// position by position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/route/route.h"

namespace pagoda::testing {

// The experts that one call of route() has chosen.
struct ChosenExperts {
  std::vector<std::int32_t> experts;  // [tokens, num_chosen]
  int num_chosen = 0;
};
using ExpertChoices = std::vector<ChosenExperts>;

// Returns a body that calls the backend's own, and appends what it chooses.
RouteBody recording_body(ExpertChoices& choices);

// Returns a body that takes its choices from `choices`, from the first call on, and computes their
// weights by the definition. A call that has no such choices sets `error`, and chooses itself.
RouteBody replaying_body(const ExpertChoices& choices, std::string& error);

// Returns the share of equal choices: for each token, the experts that both have chosen.
double share_of_equal(const ExpertChoices& a, const ExpertChoices& b);

}  // namespace pagoda::testing
