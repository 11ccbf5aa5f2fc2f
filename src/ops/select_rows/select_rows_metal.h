// Parameters of select_rows.metal.
#ifndef PAGODA_SELECT_ROWS_METAL_H
#define PAGODA_SELECT_ROWS_METAL_H

struct SelectRowsParameters {
  int dim;
};

#endif  // PAGODA_SELECT_ROWS_METAL_H
