#include "engine/plan.h"

#include "core/check.h"
#include "engine/sequence.h"

namespace pagoda {

Plans::Plans(int max_num_seqs) {
  for (Plan& plan : plans_) plan.sequences.reserve(max_num_seqs);
  prefills_.reserve(max_num_seqs);
}

void Plans::begin() {
  Plan& plan = next();
  plan.sequences.clear();
  plan.num_tokens = 0;
  plan.num_samples = 0;
  prefills_.clear();
}

void Plans::add(const PlannedSequence& planned, bool is_decode) {
  Plan& plan = next();
  plan.num_tokens += planned.num_new_tokens;
  if (planned.samples) plan.num_samples += 1 + planned.sequence->num_forks();
  (is_decode ? plan.sequences : prefills_).push_back(planned);
}

void Plans::end() {
  Plan& plan = next();
  plan.num_decodes = static_cast<int>(plan.sequences.size());
  plan.sequences.insert(plan.sequences.end(), prefills_.begin(), prefills_.end());
}

const Plan& Plans::launch() {
  if (num_in_flight_ > 0) newest_ = 1 - newest_;
  ++num_in_flight_;
  return plans_[newest_];
}

Plan& Plans::complete(const Plan& plan) {
  Plan& oldest = plans_[num_in_flight_ == 2 ? 1 - newest_ : newest_];
  PAGODA_CHECK(num_in_flight_ > 0 && &plan == &oldest,
               "[scheduler] a plan is committed out of its order");
  --num_in_flight_;
  return oldest;
}

}  // namespace pagoda
