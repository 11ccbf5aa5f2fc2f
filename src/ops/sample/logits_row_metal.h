// Constants for the kernels that work on rows of logits, and for the code that launches them.
#ifndef PAGODA_LOGITS_ROW_PARAMETERS_H
#define PAGODA_LOGITS_ROW_PARAMETERS_H

enum {
  kRowThreads = 1024,      // of a threadgroup, which has a row; a SIMD group has a lane for each
                           // SIMD group
  kRowScratchBytes = 512,  // threadgroup memory for numbers that SIMD groups exchange
  kRowBuckets = 2048,      // of a histogram
  kRowHistogramBytes = 16384,  // threadgroup memory of a histogram: 64 bits a bucket
};

#endif  // PAGODA_LOGITS_ROW_PARAMETERS_H
