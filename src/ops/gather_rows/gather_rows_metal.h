#ifndef PAGODA_GATHER_ROWS_METAL_H
#define PAGODA_GATHER_ROWS_METAL_H

struct GatherRowsParameters {
  uint width;         // k: columns of out
  uint first_row;     // the segment's first row in the joined matrix
  uint rows;          // rows of the segment
  uint panel_stride;  // words from a panel of the segment to its next panel
  uint ids_stride;    // elements from an id to the next
  float factor;       // multiplies every element
};

#endif  // PAGODA_GATHER_ROWS_METAL_H
