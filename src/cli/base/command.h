// The subcommands of `pagoda`. Each file declares its own flags and runs with them.
//
// Exit codes: 0 success, 1 failure, 2 bad usage; a failure is one line on stderr. A
// pipe whose reader has ended ends the process by SIGPIPE, quietly: 141 in a shell.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace pagoda {

// The body of a subcommand, called after its flags are parsed; returns the exit code.
using CommandBody = std::function<int()>;

void add_serve_command(CLI::App& app, CommandBody& body);
void add_run_command(CLI::App& app, CommandBody& body);
void add_chat_command(CLI::App& app, CommandBody& body);
void add_bench_command(CLI::App& app, CommandBody& body);
void add_perplexity_command(CLI::App& app, CommandBody& body);
void add_info_command(CLI::App& app, CommandBody& body);
void add_ps_command(CLI::App& app, CommandBody& body);
void add_pull_command(CLI::App& app, CommandBody& body);
void add_store_commands(CLI::App& app, CommandBody& body);
void add_quantize_command(CLI::App& app, CommandBody& body);
// Adds the commands that print shell completions and the manual page, made from all flags in `app`.
void add_completions_commands(CLI::App& app, CommandBody& body);

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

}  // namespace pagoda
