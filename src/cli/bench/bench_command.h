// The subcommands of `pagoda bench`.
#pragma once

#include "cli/base/command.h"

namespace pagoda {

void add_bench_latency(CLI::App& bench, CommandBody& body);
void add_bench_throughput(CLI::App& bench, CommandBody& body);
void add_bench_serve(CLI::App& bench, CommandBody& body);

}  // namespace pagoda
