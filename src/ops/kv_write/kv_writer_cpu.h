// KvWriter: writes some tokens to a cache on the cpu backend, for all ops that do this.
#pragma once

#include <cstdint>

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "tensor/exec.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

class KvWriter {
 public:
  // REQUIRES: view and batch outlive the writer.
  KvWriter(Exec& exec, const KvView& view, const StepBatch& batch);

  // Writes tokens [begin, end) of k and v, as kv_write() takes them. Several threads may write at
  // once, each with its own number.
  void write(const Tensor& k, const Tensor& v, std::int64_t begin, std::int64_t end,
             int thread) const;

 private:
  const KvView& view_;
  const std::int32_t* slots_;
  Tensor memory_;  // [threads, floats]
};

}  // namespace pagoda::cpu
