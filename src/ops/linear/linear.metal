// A matrix product of few rows: each SIMD group sums NUM_COLS columns of ROWS rows.
//
// Lane i takes the values 8 i to 8 i + 7 of every 256 along k, in ascending order; the lanes' sums
// are added last. So an element's bits are a function of the width alone: ROWS only says how many
// rows share a read of the weights. A row past the last one is the last one again, and not written.
//
// x [rows, width]; out [rows, cols]. Weights are w [cols, width], or for BITS > 0 affine groups:
// scale * q + offset, codes [cols, width * BITS / 32] words of q, scales and offsets
// [cols, width / GROUP_SIZE]. What is not in use is of any shape.
constexpr int kLanes = 32;
constexpr int kChunk = 8;
const int bits = BITS > 0 ? BITS : 8;
const int num_rows = x_shape[0];
const int width = x_shape[1];
const int num_cols = BITS == 0 ? w_shape[0] : codes_shape[0];
const int lane = int(thread_index_in_simdgroup);
const int first_row = ROWS * int(threadgroup_position_in_grid.y);
const int first_col = NUM_COLS * (NUM_GROUPS * int(threadgroup_position_in_grid.x) +
                                  int(simdgroup_index_in_threadgroup));
if (first_col >= num_cols) return;

float sums[ROWS * NUM_COLS] = {0};
for (int k = kChunk * lane; k < width; k += kChunk * kLanes) {
  float inputs[ROWS * kChunk];
  float input_sums[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    const size_t row = size_t(metal::min(first_row + r, num_rows - 1)) * width;
    input_sums[r] = 0;
    for (int i = 0; i < kChunk; ++i) {
      inputs[r * kChunk + i] = k + i < width ? float(x[row + k + i]) : 0.0f;
      input_sums[r] += inputs[r * kChunk + i];
    }
  }
  for (int c = 0; c < NUM_COLS; ++c) {
    const size_t col = size_t(metal::min(first_col + c, num_cols - 1));
    float weights[kChunk];
    float scale = 1;
    float offset = 0;
    if (BITS == 0) {
      for (int i = 0; i < kChunk; ++i) {
        weights[i] = k + i < width ? float(w[col * width + k + i]) : 0.0f;
      }
    } else {
      const size_t words = col * codes_shape[1];
      for (int i = 0; i < kChunk; ++i) {
        const uint bit = uint(k / kChunk) * (kChunk * bits) + uint(i) * bits;
        uint q = codes[words + bit / 32] >> (bit % 32);
        // Values of 3, 5 and 6 bits may end in the next word.
        if (32 % bits != 0 && bit % 32 + bits > 32) {
          q |= codes[words + bit / 32 + 1] << (32 - bit % 32);
        }
        weights[i] = float(q & ((1u << bits) - 1));
      }
      const size_t number = col * (width / GROUP_SIZE) + k / GROUP_SIZE;
      scale = scales[number];
      offset = offsets[number];
    }
    for (int r = 0; r < ROWS; ++r) {
      float part = 0;
      for (int i = 0; i < kChunk; ++i) {
        part = metal::fma(inputs[r * kChunk + i], weights[i], part);
      }
      const int at = r * NUM_COLS + c;
      if (BITS == 0) {
        sums[at] += part;
      } else {
        sums[at] = metal::fma(scale, part, metal::fma(offset, input_sums[r], sums[at]));
      }
    }
  }
}
for (int r = 0; r < ROWS; ++r) {
  for (int c = 0; c < NUM_COLS; ++c) {
    const float sum = metal::simd_sum(sums[r * NUM_COLS + c]);
    if (lane == 0 && first_row + r < num_rows && first_col + c < num_cols) {
      out[size_t(first_row + r) * num_cols + first_col + c] = Out(sum);
    }
  }
}
