// The cores and the memory that this process may use on this machine, within the limits of cgroups
// and affinity masks.
//
// Everything is read from /proc and /sys under `root`, which only tests change. A file that is
// missing or malformed sets no limit: these are defaults, and a wrong guess must not keep a process
// from starting. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace pagoda {

// Returns the default number of worker threads: the number of physical cores that the affinity mask
// allows. Two hyper-threads of a core share its vector units, so a second one only adds waiting.
// The result is at most the cgroup's CPU quota, rounded down, because threads beyond the quota are
// stopped in the middle of a step. It is at least 1.
int default_num_threads();

// Does the same for the CPUs of an affinity mask and the files under `root`.
int num_threads_for(std::span<const int> allowed_cpus, const std::filesystem::path& root);

// Returns the CPU that the calling thread is on, or -1 if the system does not say.
int current_cpu();

// Moves the calling thread off `cpu`, on which another of our threads runs. Linux by itself does
// not prefer a core that runs another process to a core that runs our own busy thread. The calling
// thread's affinity mask is restored. Nothing happens if the mask allows no other CPU, or the
// system has no masks.
void leave_cpu(int cpu);

// Makes the calling thread run in slices of 0.1 ms. So it runs as soon as it wakes, even if other
// threads compute on every CPU. Else it would wait until the slice of one of them ends, 1 to 4 ms
// later. For Linux 6.12 and later (its EEVDF scheduler: Stoica and Abdel-Wahab, "Earliest Eligible
// Virtual Deadline First", 1995). Nothing happens elsewhere, or if the thread's policy is not
// SCHED_OTHER.
void ask_for_short_slices();

// Raises the calling thread's niceness by 5, so that other threads run first. If another thread
// wants the same CPU, this one gets about a quarter of it. Threads that it starts inherit the
// niceness. Linux only, where each thread has its own niceness; nothing happens elsewhere.
void give_way();

// Returns the bytes that can still be allocated without swapping or being killed. This is the least
// of three: the system's MemAvailable, the address space left by `ulimit -v`, and the memory left
// by each cgroup (v1 or v2) around this process. A cgroup leaves its limit minus its use. Its
// inactive file pages count as free, because the kernel drops them first.
std::int64_t available_memory_bytes(const std::filesystem::path& root = "/");

// Returns the most memory this process has had resident so far (VmHWM).
std::int64_t peak_resident_bytes(const std::filesystem::path& root = "/");

// Resources that this process uses. A figure that the system does not tell is -1.
struct ProcessUsage {
  double cpu_s = -1;    // user and system time of all threads
  double start_s = -1;  // when it started, in seconds since 1970
  std::int64_t resident_bytes = -1;
  std::int64_t virtual_bytes = -1;
  std::int64_t open_files = -1;
  std::int64_t max_open_files = -1;  // the soft limit
};
ProcessUsage process_usage(const std::filesystem::path& root = "/");

}  // namespace pagoda
