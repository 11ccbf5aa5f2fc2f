// Counts of what a decode step asks of MLX and of the host, where no kernel runs.
#pragma once

namespace pagoda {

// Prints dispatches, barriers, command buffers and graph nodes of a step, and the host's time for
// it. The model is random, of Qwen3-0.6B's layers, narrow ones. Needs traced kernels.
void print_step_counts();

}  // namespace pagoda
