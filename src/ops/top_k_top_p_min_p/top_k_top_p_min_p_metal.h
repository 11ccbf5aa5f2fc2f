// The parameters of top_k_top_p_min_p.metal.
#ifndef PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H
#define PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H

struct TopKTopPMinPParameters {
  unsigned int vocab;
  int is_aligned;  // whether each row begins at a multiple of four logits
};

#endif  // PAGODA_TOP_K_TOP_P_MIN_P_PARAMETERS_H
