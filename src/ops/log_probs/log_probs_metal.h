// The parameters of log_probs.metal.
#ifndef PAGODA_LOG_PROBS_PARAMETERS_H
#define PAGODA_LOG_PROBS_PARAMETERS_H

struct LogProbsParameters {
  unsigned int vocab;
  int is_aligned;  // to four logits, of which vocab is a multiple
  int has_rows;    // else `rows` is not looked at, and row i is i
  unsigned int num_top;
};

#endif  // PAGODA_LOG_PROBS_PARAMETERS_H
