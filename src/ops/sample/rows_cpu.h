// Code that the cpu bodies of sampling share: a batch of logits, row by row over the worker
// threads.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_exec.h"
#include "draw/row_sampler.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda::cpu {

// Calls body(sampler, row, thread) for each of [0, num_rows), with the thread's own sampler.
template <typename Body>
void for_each_row(Exec& exec, std::int64_t num_rows, std::int64_t vocab_size, const Body& body) {
  const auto num_words = static_cast<std::int64_t>(RowSampler::num_words(vocab_size));
  const Tensor memory = exec.allocate(DType::kInt32, {exec.num_threads(), num_words});
  pool_of(exec).parallel_for(num_rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    RowSampler sampler(static_cast<int>(vocab_size),
                       memory.span<std::int32_t>().subspan(thread * num_words, num_words));
    for (std::int64_t row = begin; row < end; ++row) body(sampler, row, thread);
  });
}

inline RowFilter filter_of(const RowFilters& filters, std::int64_t row) {
  return {.top_k = filters.top_k.data<std::int32_t>()[row],
          .top_p = filters.top_p.data<float>()[row],
          .min_p_margin = filters.min_p_margin.data<float>()[row]};
}

}  // namespace pagoda::cpu
