// The parameters of top_k_top_p_min_p.metal.
#ifndef PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H
#define PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H

struct TopKTopPMinPParameters {
  unsigned int vocab;
  int is_aligned;  // to four logits, of which vocab is a multiple
};

#endif  // PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H
