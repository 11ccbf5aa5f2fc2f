#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

// The kernel's struct sched_attr in its first version. The C library has it only since 2.41, and in
// some versions the kernel's header and <sched.h> cannot be included together.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns;
  std::uint64_t deadline_ns;
  std::uint64_t period_ns;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t kShortSliceNs = 100'000;  // the shortest that the kernel allows

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Returns the number at the start of the text, or nothing ("max", "-1" and an empty file are no
// limits).
std::optional<std::int64_t> leading_number(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + start, end, number).ec != std::errc()) return std::nullopt;
  return number < 0 ? std::nullopt : std::optional(number);
}

std::optional<std::int64_t> read_number(const fs::path& path) {
  const auto text = read_text(path);
  return text ? leading_number(*text) : std::nullopt;
}

// Returns the number after `name` at the start of a line: "MemAvailable:  123 kB", "inactive_file
// 456".
std::optional<std::int64_t> read_field(const fs::path& path, std::string_view name) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return leading_number(std::string_view(line).substr(name.size()));
  }
  return std::nullopt;
}

// The folders of the cgroups around this process that have `controller`, innermost first, and their
// cgroup version. Inside a container the path in /proc/self/cgroup may be the host's and not exist.
// The root of the mount always exists, and is the container's group.
struct Cgroups {
  std::vector<fs::path> folders;
  bool v2 = false;
};

bool lists(std::string_view controllers, std::string_view controller) {
  std::istringstream names{std::string(controllers)};
  for (std::string name; std::getline(names, name, ',');) {
    if (name == controller) return true;
  }
  return false;
}

Cgroups cgroups_of(std::string_view controller, const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  const bool v2 = fs::exists(mount / "cgroup.controllers");
  std::istringstream lines(read_text(root / "proc/self/cgroup").value_or(""));
  for (std::string line;
       std::getline(lines, line);) {  // "4:cpu,cpuacct:/path", in version 2 "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? !controllers.empty() : !lists(controllers, controller)) continue;
    const fs::path base = v2 ? mount : mount / controller;
    Cgroups groups{.folders = {}, .v2 = v2};
    for (fs::path path = fs::path(line.substr(second + 1)).relative_path(); !path.empty();
         path = path.parent_path()) {
      groups.folders.push_back(base / path);
    }
    groups.folders.push_back(base);
    return groups;
  }
  return {};
}

// Returns one cgroup's quota of CPU time as a number of CPUs, or nothing if it sets no limit.
std::optional<double> cpu_quota(const fs::path& folder, bool v2) {
  std::optional<std::int64_t> quota;
  std::optional<std::int64_t> period;
  if (v2) {
    const std::string text = read_text(folder / "cpu.max").value_or("");  // "150000 100000"
    quota = leading_number(text);
    const std::size_t space = text.find(' ');
    if (space != std::string::npos) period = leading_number(std::string_view(text).substr(space));
  } else {
    quota = read_number(folder / "cpu.cfs_quota_us");
    period = read_number(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::int64_t memory_left(const fs::path& folder, bool v2) {
  const auto limit = read_number(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"));
  const auto usage = read_number(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !usage) return kUnlimited;
  const std::int64_t droppable =
      read_field(folder / "memory.stat", v2 ? "inactive_file " : "total_inactive_file ")
          .value_or(0);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *usage - droppable));
}

// Returns the bytes of address space that `ulimit -v` leaves.
std::int64_t address_space_left(const fs::path& root) {
  const auto limit = read_field(root / "proc/self/limits", "Max address space");
  if (!limit) return kUnlimited;
  const std::int64_t taken = read_field(root / "proc/self/status", "VmSize:").value_or(0) * 1024;
  return std::max<std::int64_t>(0, *limit - taken);
}

int count_physical_cores(std::span<const int> allowed_cpus, const fs::path& root) {
  std::set<std::string> cores;  // a core's name is the list of its hyper-threads
  for (const int cpu : allowed_cpus) {
    const std::string name = "cpu" + std::to_string(cpu);
    const fs::path topology = root / "sys/devices/system/cpu" / name / "topology";
    cores.insert(read_text(topology / "thread_siblings_list").value_or(name));
  }
  return static_cast<int>(cores.size());
}

}  // namespace

int num_threads_for(std::span<const int> allowed_cpus, const fs::path& root) {
  double limit = count_physical_cores(allowed_cpus, root);
  const Cgroups groups = cgroups_of("cpu", root);
  for (const fs::path& folder : groups.folders) {
    if (const auto quota = cpu_quota(folder, groups.v2)) limit = std::min(limit, *quota);
  }
  return std::max(1, static_cast<int>(limit));
}

int default_num_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> allowed_cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) allowed_cpus.push_back(cpu);
    }
  }
  return num_threads_for(allowed_cpus, "/");
}

int current_cpu() {
  return sched_getcpu();
}

void leave_cpu(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(mask), &mask) != 0) return;
  cpu_set_t others = mask;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  (void)sched_setaffinity(0, sizeof(mask), &mask);  // restores the thread's mask
}

void ask_for_short_slices() {
  SchedulingAttributes attributes{};
  const long status = syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0);
  if (status != 0 || attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = kShortSliceNs;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void give_way() {
  constexpr int kNicer = 5;
  const auto thread = static_cast<id_t>(gettid());
  errno = 0;  // getpriority() may return -1 without an error
  const int niceness = getpriority(PRIO_PROCESS, thread);
  if (errno == 0) (void)setpriority(PRIO_PROCESS, thread, niceness + kNicer);
}

std::int64_t available_memory_bytes(const fs::path& root) {
  std::int64_t available = kUnlimited;
  if (const auto kib = read_field(root / "proc/meminfo", "MemAvailable:")) available = *kib * 1024;
  const Cgroups groups = cgroups_of("memory", root);
  for (const fs::path& folder : groups.folders) {
    available = std::min(available, memory_left(folder, groups.v2));
  }
  return std::min(available, address_space_left(root));
}

std::int64_t peak_resident_bytes(const fs::path& root) {
  return read_field(root / "proc/self/status", "VmHWM:").value_or(0) * 1024;
}

ProcessUsage process_usage(const fs::path& root) {
  ProcessUsage usage;
  const fs::path self = root / "proc/self";
  if (const auto kib = read_field(self / "status", "VmRSS:")) usage.resident_bytes = *kib * 1024;
  if (const auto kib = read_field(self / "status", "VmSize:")) usage.virtual_bytes = *kib * 1024;
  if (const auto most = read_field(self / "limits", "Max open files")) usage.max_open_files = *most;
  std::error_code error;
  std::int64_t num_files = 0;
  for (fs::directory_iterator entry(self / "fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++num_files;
  }
  if (!error) usage.open_files = num_files;
  // The program's name may have any characters, and the fields are numbered behind it.
  const std::string stat = read_text(self / "stat").value_or("");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return usage;
  std::istringstream fields(stat.substr(name_end + 1));
  std::vector<std::string> values;  // the first is the process' state
  for (std::string value; fields >> value;) values.push_back(std::move(value));
  constexpr std::size_t kUserTicks = 11;
  constexpr std::size_t kSystemTicks = 12;
  constexpr std::size_t kStartTicks = 19;  // since the system was started
  if (values.size() <= kStartTicks) return usage;
  const auto seconds = [&](std::size_t index) {
    return static_cast<double>(leading_number(values[index]).value_or(0)) /
           static_cast<double>(sysconf(_SC_CLK_TCK));
  };
  usage.cpu_s = seconds(kUserTicks) + seconds(kSystemTicks);
  if (const auto boot_s = read_field(root / "proc/stat", "btime "))
    usage.start_s = static_cast<double>(*boot_s) + seconds(kStartTicks);
  return usage;
}

}  // namespace pagoda
