// pagoda bench: this machine's limits, and how close to them a model runs.
#include "cli/bench/bench_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/gpu/gpu_peaks.h"
#include "cli/base/report_error.h"
#include "cli/bench/machine_limits.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "core/json.h"
#include "core/machine.h"

namespace pagoda {
namespace {

OrderedJson limits_json(const MachineLimits& limits) {
  OrderedJson row = {{"threads", limits.num_threads},
                     {"read_gb_per_s", limits.read_gb_per_s},
                     {"float32_gmac_per_s", limits.float32_gmac_per_s}};
  if (limits.bf16_gmac_per_s) row["bf16_gmac_per_s"] = *limits.bf16_gmac_per_s;
  if (limits.int16_gmac_per_s) row["int16_gmac_per_s"] = *limits.int16_gmac_per_s;
  if (limits.int8_gmac_per_s) row["int8_gmac_per_s"] = *limits.int8_gmac_per_s;
  return row;
}

struct MachineFlags {
  int threads = 0;
  std::string device = "auto";
  bool as_json = false;
};

// Measures the GPU of the device that the user names; returns nothing if the device has none.
Result<std::optional<gpu::GpuPeaks>> asked_gpu_peaks(const std::string& device) {
  PAGODA_ASSIGN_OR_RETURN(const std::optional<Backend> backend, parse_device(device));
  if (!backend) return std::optional<gpu::GpuPeaks>();
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<Exec> exec, make_exec({.backend = *backend}));
  if (traits_of(*backend).is_native) return std::optional<gpu::GpuPeaks>();
  return gpu::gpu_peaks(*exec);
}

Status bench_machine(const MachineFlags& flags) {
  const int max_threads = flags.threads == 0 ? default_num_threads() : flags.threads;
  OrderedJson rows = OrderedJson::array();
  if (!flags.as_json)
    std::printf(
        "threads   read GB/s   float32 GMAC/s   bf16 GMAC/s   int16 GMAC/s   int8 GMAC/s\n");
  for (int threads = 1; threads <= max_threads;
       threads = std::min(threads * 2, std::max(max_threads, threads + 1))) {
    const MachineLimits limits = MachineProbe(threads).measure();
    rows.push_back(limits_json(limits));
    if (flags.as_json) continue;
    std::printf("%7d %11.1f %16.1f %13.1f %14.1f %13.1f\n", threads, limits.read_gb_per_s,
                limits.float32_gmac_per_s, limits.bf16_gmac_per_s.value_or(0),
                limits.int16_gmac_per_s.value_or(0), limits.int8_gmac_per_s.value_or(0));
  }
  PAGODA_ASSIGN_OR_RETURN(const std::optional<gpu::GpuPeaks> gpu, asked_gpu_peaks(flags.device));
  if (flags.as_json) {
    OrderedJson all = {{"by_threads", rows},
                       {"machine_read_gb_per_s", rows.back()["read_gb_per_s"]}};
    if (gpu) {
      all["gpu_read_gb_per_s"] = gpu->read_gb_per_s;
      all["gpu_fma_gflop_per_s"] = gpu->fma_gflop_per_s;
    }
    std::printf("%s\n", json_text(all).c_str());
  } else if (gpu) {
    std::printf("GPU: reads %.1f GB/s, %.2f TFLOP/s by fma (float32)\n", gpu->read_gb_per_s,
                gpu->fma_gflop_per_s / 1e3);
  }
  return ok_status();
}

void add_machine(CLI::App& bench, CommandBody& body) {
  auto flags = std::make_shared<MachineFlags>();
  CLI::App& command = *bench.add_subcommand("machine", "This machine's limits, by thread count");
  command.add_option("--threads", flags->threads, "At most; 0: the physical cores")
      ->transform(whole_number(0, 1024));
  command.add_option("--device", flags->device, "mlx: its GPU's limits too")
      ->check(one_of({"auto", "reference", "cpu", "mlx", "cuda"}))
      ->capture_default_str();
  command.add_flag("--json", flags->as_json, "Print one JSON line");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = bench_machine(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, CommandBody& body) {
  CLI::App& bench = *app.add_subcommand("bench", "Figures beside the machine's limits");
  bench.require_subcommand(1);
  add_machine(bench, body);
  add_bench_latency(bench, body);
  add_bench_throughput(bench, body);
  add_bench_serve(bench, body);
}

}  // namespace pagoda
