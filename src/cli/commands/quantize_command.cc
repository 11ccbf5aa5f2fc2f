// pagoda quantize: converts a checkpoint to a GGUF file of fewer bits.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/base/command.h"
#include "cli/base/interrupt_guard.h"
#include "cli/base/report_error.h"
#include "cli/flags/flag_values.h"
#include "convert/quantize_model.h"
#include "core/machine.h"
#include "core/progress_bar.h"
#include "hub/model_store.h"

namespace pagoda {

namespace {

struct QuantizeFlags {
  std::string input;
  std::string output;
  std::string format;
  int num_threads = 0;
  bool overwrites = false;
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const WeightFormat format : kQuantizeFormats) names.emplace_back(traits_of(format).name);
  return names;
}

Result<WeightFormat> parse_format(const std::string& name) {
  for (const WeightFormat format : kQuantizeFormats) {
    if (traits_of(format).name == name) return format;
  }
  return invalid_argument("[quantize] --format: expected {}, got {}",
                          fmt::join(format_names(), ", "), name);
}

void print_summary(const std::string& output, const QuantizeSummary& summary) {
  std::string formats;
  for (const auto& [format, count] : summary.num_tensors) {
    formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", count, format);
  }
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::printf("%s: %.1f million parameters, %.1f MB of %.1f; tensors: %s\n", output.c_str(),
              megabytes(summary.num_values), megabytes(summary.output_bytes),
              megabytes(summary.input_bytes), formats.c_str());
}

Status quantize(const QuantizeFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(const WeightFormat format, parse_format(flags.format));
  PAGODA_ASSIGN_OR_RETURN(const std::filesystem::path input, resolve_model(flags.input));
  QuantizeOptions options{
      .input = input.string(),
      .output = flags.output,
      .overwrites = flags.overwrites,
      .format = format,
      .num_threads = flags.num_threads != 0 ? flags.num_threads : default_num_threads()};
  const InterruptGuard interrupts;
  ProgressBar bar("quantizing");
  options.on_progress = [&](double share) {
    bar.show(share);
    return interrupts.is_pending() ? cancelled("[quantize] interrupted") : ok_status();
  };
  PAGODA_ASSIGN_OR_RETURN(const QuantizeSummary summary, quantize_model(options));
  print_summary(flags.output, summary);
  return ok_status();
}

}  // namespace

void add_quantize_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App& command =
      *app.add_subcommand("quantize", "Rewrite a model as a GGUF file of fewer bits");
  command
      .add_option("IN", flags->input,
                  "A GGUF file, a Hugging Face folder, or a name that `pagoda pull` knows")
      ->type_name(kModelType)
      ->required();
  command.add_option("OUT", flags->output, "The GGUF file to write")
      ->type_name(kPathType)
      ->required();
  command.add_option("--format", flags->format, "What matrices become")
      ->required()
      ->check(one_of(format_names()));
  command
      .add_option("--threads", flags->num_threads,
                  "Worker threads; 0: the physical cores that the cgroup grants")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  command.add_flag("--overwrite", flags->overwrites, "Replace OUT where it is there already");
  command.callback([flags, &body] {
    body = [flags] {
      const Status status = quantize(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
