// Counts the work of a decode step in MLX and on the host. No kernel runs.
#pragma once

namespace pagoda {

// Prints dispatches, barriers, command buffers and graph nodes of a step, and the host's time for
// it. The model is random, with Qwen3-0.6B's layers, but narrow. Needs traced kernels.
void print_step_counts();

}  // namespace pagoda
