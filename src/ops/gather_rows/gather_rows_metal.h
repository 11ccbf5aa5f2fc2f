#ifndef PAGODA_GATHER_ROWS_METAL_H
#define PAGODA_GATHER_ROWS_METAL_H

struct GatherRowsParameters {
  uint width;         // k: columns of out
  uint first_row;     // of the joined matrix that the segment has
  uint rows;          // of the segment
  uint panel_stride;  // words from a panel to the segment's next
  uint ids_stride;    // elements from an id to the next
  float factor;       // of every element
};

#endif  // PAGODA_GATHER_ROWS_METAL_H
