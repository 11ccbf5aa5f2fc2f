// Penalties in one pass: a thread an entry, NUM_THREADS of them a threadgroup, a row along y.
//
// logits, out [rows, vocab]; counts [histograms, vocab]; histogram_of, repetition, frequency,
// presence [rows]: as apply_penalties.h has them.
const int vocab = logits_shape[1];
const int row = int(threadgroup_position_in_grid.y);
const int token =
    NUM_THREADS * int(threadgroup_position_in_grid.x) + int(thread_index_in_threadgroup);
if (token >= vocab) return;
const size_t at = size_t(row) * vocab + token;
const int histogram = histogram_of[row];
const int count = histogram < 0 ? 0 : counts[size_t(histogram) * vocab + token];
float x = float(logits[at]);
if (count > 0) x = x > 0 ? x / repetition[row] : x* repetition[row];
if (count > 1) {
  const float penalty = frequency[row] * float(count - 1);
  x = x - penalty - presence[row];
}
out[at] = T(x);
