// The parameters of log_probs.metal.
#ifndef PAGODA_LOG_PROBS_PARAMETERS_H
#define PAGODA_LOG_PROBS_PARAMETERS_H

struct LogProbsParameters {
  unsigned int vocab;
  int is_aligned;  // whether each row begins at a multiple of four logits
  int has_rows;    // 0: `rows` is not read, and rows[i] is i
  unsigned int num_top;
};

#endif  // PAGODA_LOG_PROBS_PARAMETERS_H
