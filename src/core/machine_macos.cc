#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/machine.h"

namespace pagoda {
namespace {

int sysctl_int(const char* name) {
  int value = 0;
  std::size_t size = sizeof(value);
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

// Returns the number of performance cores, because a step waits for its slowest thread. There are
// neither cgroups nor affinity masks here.
int default_num_threads() {
  const int performance_cores = sysctl_int("hw.perflevel0.physicalcpu");
  return std::max(1, performance_cores > 0 ? performance_cores : sysctl_int("hw.physicalcpu"));
}

int num_threads_for(std::span<const int> allowed_cpus, const std::filesystem::path& root) {
  return std::max(1, static_cast<int>(allowed_cpus.size()));
}

int current_cpu() {
  return -1;
}

void leave_cpu(int cpu) {}

void ask_for_short_slices() {}

void give_way() {}

std::int64_t available_memory_bytes(const std::filesystem::path& root) {
  vm_statistics64_data_t statistics;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const auto info = reinterpret_cast<host_info64_t>(&statistics);
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, info, &count) != KERN_SUCCESS) return 0;
  const std::int64_t pages =
      std::int64_t{statistics.free_count} + statistics.inactive_count + statistics.purgeable_count;
  return pages * static_cast<std::int64_t>(vm_page_size);
}

std::int64_t peak_resident_bytes(const std::filesystem::path& root) {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;  // bytes here, unlike on Linux
}

ProcessUsage process_usage(const std::filesystem::path& root) {
  ProcessUsage usage;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  rusage times{};
  if (getrusage(RUSAGE_SELF, &times) == 0)
    usage.cpu_s = seconds(times.ru_utime) + seconds(times.ru_stime);
  mach_task_basic_info_data_t memory{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&memory),
                &count) == KERN_SUCCESS) {
    usage.resident_bytes = static_cast<std::int64_t>(memory.resident_size);
    usage.virtual_bytes = static_cast<std::int64_t>(memory.virtual_size);
  }
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    usage.max_open_files = static_cast<std::int64_t>(files.rlim_cur);
  int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()};
  kinfo_proc process{};
  std::size_t size = sizeof(process);
  if (sysctl(name, 4, &process, &size, nullptr, 0) == 0)
    usage.start_s = seconds(process.kp_proc.p_starttime);
  return usage;
}

}  // namespace pagoda
