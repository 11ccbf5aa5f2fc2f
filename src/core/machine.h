// The cores and the memory that this machine gives to this process, as cgroups, affinity and
// hyper-threads leave them.
//
// Everything is read from /proc and /sys under `root`, which only tests change. A file that is
// missing or makes no sense limits nothing: these are defaults, and a wrong guess must not keep a
// process from starting. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace pagoda {

// Returns the number of worker threads to use where the user asked for no number. It is that of the
// physical cores that the affinity mask allows: two hyper-threads of a core share its vector units,
// so a second one only adds waiting. It is at most the cgroup's CPU quota rounded down, since
// threads beyond it are stopped in the middle of a step. At least 1.
int default_num_threads();

// Does the same from its parts: `allowed_cpus` as sched_getaffinity gives them.
int num_threads_for(std::span<const int> allowed_cpus, const std::filesystem::path& root);

// Returns the CPU that the calling thread is on, or -1 where the system does not say.
int current_cpu();

// Moves the calling thread off `cpu`, where another thread of ours is: left alone, Linux puts two
// busy threads on one core as gladly as a thread and a stranger's process. Its affinity mask is the
// same afterwards; nothing happens where that allows no other CPU, or the system has no masks.
void leave_cpu(int cpu);

// Makes the calling thread run in slices of 0.1 ms. So it runs as soon as it wakes where others
// compute on every CPU. Else it would wait until the slice of one of them is over, 1 to 4 ms later.
// For Linux 6.12 and after (its EEVDF scheduler: Stoica and Abdel-Wahab, "Earliest Eligible Virtual
// Deadline First", 1995); nothing happens elsewhere, nor to a thread of a policy other than
// SCHED_OTHER.
void ask_for_short_slices();

// Lets the threads of the usual priority run first from here on. Under Linux, where a priority is a
// thread's own, the calling thread becomes 5 nicer. It then gets about a quarter of a CPU that
// another one wants, and so do threads that it starts. Nothing happens elsewhere.
void give_way();

// Returns the bytes that can still be taken without swapping or being killed. It is the least of
// the system's MemAvailable, of what `ulimit -v` leaves of the address space, and of what cgroups
// leave. Every cgroup (v1 or v2) around this process leaves its limit less what is in use there.
// Its inactive file pages count as free, because the kernel drops them first.
std::int64_t available_memory_bytes(const std::filesystem::path& root = "/");

// Returns the most memory this process has had resident so far (VmHWM).
std::int64_t peak_resident_bytes(const std::filesystem::path& root = "/");

}  // namespace pagoda
