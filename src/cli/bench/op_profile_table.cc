#include "cli/bench/op_profile_table.h"

#include <fmt/format.h>

#include "core/json.h"
#include "tensor/op_profile.h"

namespace pagoda {
namespace {

constexpr StepPhase kPhases[] = {StepPhase::kPrefill, StepPhase::kDecode};

std::string_view phase_name(StepPhase phase) {
  return phase == StepPhase::kDecode ? "decode" : "prefill";
}

// Returns the ops of one phase, and its steps' time outside ops as another op.
std::vector<OpTotals> ops_of(const OpProfile& profile, StepPhase phase) {
  std::vector<OpTotals> ops;
  double outside = profile.phase(phase).seconds;
  for (const OpTotals& totals : profile.ops()) {
    if (totals.phase != phase) continue;
    outside -= totals.seconds;
    ops.push_back(totals);
  }
  ops.push_back({.call = {.op = "outside ops"},
                 .phase = phase,
                 .num_calls = profile.phase(phase).num_steps,
                 .seconds = std::max(outside, 0.0)});
  return ops;
}

std::string name_of(const OpCall& call) {
  if (call.format.empty()) return std::string(call.op);
  return fmt::format("{} {} x {} {}", call.op, call.rows, call.cols, call.format);
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

std::string op_line(const OpTotals& totals, const PhaseTotals& phase, const MachineLimits& limits) {
  const double read = per_second(totals.call.read_bytes, totals.seconds);
  const double products = per_second(totals.call.products, totals.seconds);
  std::string line = fmt::format("{:<34} {:>7} {:>10.2f} {:>6.1f} % {:>10.2f} {:>8.2f} {:>6.0f} %",
                                 name_of(totals.call), totals.num_calls, totals.seconds * 1e3,
                                 100 * totals.seconds / phase.seconds, totals.call.read_bytes / 1e6,
                                 read, 100 * read / limits.read_gb_per_s);
  if (totals.call.products > 0) {
    line +=
        fmt::format(" {:>8.1f} {:>6.0f} %", products, 100 * products / limits.product_gmac_per_s());
  }
  return line + "\n";
}

}  // namespace

std::string op_profile_table(const OpProfile& profile, const MachineLimits& limits) {
  std::string table;
  for (const StepPhase phase : kPhases) {
    const PhaseTotals totals = profile.phase(phase);
    if (totals.num_steps == 0) continue;
    table += fmt::format(
        "{}: {} steps, {:.2f} ms each; limits {:.1f} GB/s, {:.0f} GMAC/s\n"
        "{:<34} {:>7} {:>10} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8}\n",
        phase_name(phase), totals.num_steps,
        totals.seconds / static_cast<double>(totals.num_steps) * 1e3, limits.read_gb_per_s,
        limits.product_gmac_per_s(), "op", "calls", "ms", "time", "read MB", "GB/s", "of limit",
        "GMAC/s", "of limit");
    for (const OpTotals& op : ops_of(profile, phase)) table += op_line(op, totals, limits);
  }
  return table;
}

OrderedJson op_profile_json(const OpProfile& profile, const MachineLimits& limits) {
  OrderedJson rows = OrderedJson::array();
  for (const StepPhase phase : kPhases) {
    const PhaseTotals totals = profile.phase(phase);
    if (totals.num_steps == 0) continue;
    for (const OpTotals& op : ops_of(profile, phase)) {
      OrderedJson row = {{"phase", phase_name(phase)}, {"op", op.call.op}};
      if (!op.call.format.empty()) {
        row["rows"] = op.call.rows;
        row["cols"] = op.call.cols;
        row["format"] = op.call.format;
      }
      const double read = per_second(op.call.read_bytes, op.seconds);
      row["calls"] = op.num_calls;
      row["seconds"] = op.seconds;
      row["time_share"] = op.seconds / totals.seconds;
      row["read_bytes"] = op.call.read_bytes;
      row["read_gb_per_s"] = read;
      row["read_share"] = read / limits.read_gb_per_s;
      if (op.call.products > 0) row["gmac_per_s"] = per_second(op.call.products, op.seconds);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace pagoda
