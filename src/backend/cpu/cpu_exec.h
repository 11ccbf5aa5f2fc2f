// CpuExec: the cpu backend's Exec: an arena, worker threads and an instruction set.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/backend.h"
#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/panel_format.h"
#include "backend/cpu/prefetch_level.h"
#include "backend/cpu/thread_pool.h"
#include "backend/native_exec.h"

namespace pagoda::cpu {

class CpuExec final : public NativeExec {
 public:
  static Result<std::unique_ptr<Exec>> create(const ExecOptions& options);

  int num_threads() const override { return pool_.num_threads(); }
  ThreadPool& pool() { return pool_; }
  CpuIsa isa() const { return isa_; }
  bool int8_activations() const { return int8_activations_; }

  // Notes that a weight has panels of a kind. Called by the thread that prepares weights.
  void add_panel_kind(PanelKind kind) { panels_of(kind).exist = true; }
  bool has_panels(PanelKind kind) const { return panels_[static_cast<int>(kind)].exist; }
  // Returns how products of few rows prefetch panels of a kind. The default is the fastest way on
  // this family of processors. set_prefetch() may change it between steps.
  WeightPrefetch prefetch_of(PanelKind kind) const { return panels_[static_cast<int>(kind)].way; }
  void set_prefetch(PanelKind kind, WeightPrefetch way) { panels_of(kind).way = way; }

  std::string arithmetic() const override;
  // Returns the counts; thread-safe.
  ExecCounters counters() const override {
    return {.num_decoded_attentions = num_decoded_attentions_,
            .num_expert_bytes = num_expert_bytes_};
  }
  void count_decoded_attention() { ++num_decoded_attentions_; }
  void count_expert_bytes(std::int64_t bytes) { num_expert_bytes_ += bytes; }

 private:
  CpuExec(Arenas arenas, const ExecOptions& options)
      : NativeExec(Backend::kCpu, std::move(arenas)),
        isa_(*options.cpu_isa),
        int8_activations_(options.int8_activations),
        pool_(options.num_threads) {}

  struct PanelsOfKind {
    bool exist = false;
    WeightPrefetch way = weight_prefetch();
  };
  PanelsOfKind& panels_of(PanelKind kind) { return panels_[static_cast<int>(kind)]; }

  const CpuIsa isa_;
  const bool int8_activations_;
  ThreadPool pool_;
  std::array<PanelsOfKind, kNumPanelKinds> panels_;
  // Atomic: if the mlx backend runs its ops here, MLX's stream thread counts and the engine's
  // reads.
  std::atomic<std::uint64_t> num_decoded_attentions_ = 0;
  std::atomic<std::uint64_t> num_expert_bytes_ = 0;
};

// Returns the pool of an op's Exec. A body of the cpu backend is called only with a CpuExec.
inline ThreadPool& pool_of(Exec& exec) {
  return static_cast<CpuExec&>(exec).pool();
}
inline CpuIsa isa_of(const Exec& exec) {
  return static_cast<const CpuExec&>(exec).isa();
}
inline WeightPrefetch prefetch_of(const Exec& exec, PanelKind kind) {
  return static_cast<const CpuExec&>(exec).prefetch_of(kind);
}
inline bool rounds_to_int8(const Exec& exec) {
  return static_cast<const CpuExec&>(exec).int8_activations();
}

inline void count_expert_bytes(Exec& exec, std::int64_t bytes) {
  static_cast<CpuExec&>(exec).count_expert_bytes(bytes);
}
inline void count_decoded_attention(Exec& exec) {
  static_cast<CpuExec&>(exec).count_decoded_attention();
}

}  // namespace pagoda::cpu
