#ifndef PAGODA_LINEAR_METAL_H
#define PAGODA_LINEAR_METAL_H

// The parameters of a product, also of gated_linear and of a mixture. Strides are in elements.
struct LinearParameters {
  uint rows;          // of x
  uint width;         // k
  uint x_stride;      // from a row of x to the next
  uint x_is_aligned;  // 1: each row of x begins at a multiple of 16 bytes
  uint cols;          // outputs of the segment; of gated_linear, of each half
  uint panel_words;   // of one panel
  uint panel_stride;  // words from a panel to the segment's next panel
  uint chunk;         // k of a chunk, a multiple of the format's unit
  uint out_stride;    // from a row of out to the next
  uint out_column;    // the segment's first column in out, and in bias
  uint has_bias;      // 0: `bias` is not read
  uint expert_words;  // for a mixture alone: words from an expert's panels to the next expert's
  uint activation;    // for gated_linear alone: the number of an Activation
  float alpha;        // GluArgs::alpha
  float limit;        // GluArgs::limit
};

#endif  // PAGODA_LINEAR_METAL_H
