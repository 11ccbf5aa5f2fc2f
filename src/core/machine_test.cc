#include "core/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pagoda {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = 1 << 20;

// Tests with a fake /proc and /sys.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    fs::remove_all(root_);
    put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  }
  ~MachineTest() override { fs::remove_all(root_); }

  void put(const std::string& path, std::string_view text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void put_core(int cpu, std::string_view siblings) {
    put("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        siblings);
  }
  void put_hyper_threaded_cores() {
    for (const int core : {0, 1, 2, 3}) {
      const std::string siblings = std::to_string(core) + "," + std::to_string(core + 4) + "\n";
      put_core(core, siblings);
      put_core(core + 4, siblings);
    }
  }
  void put_v2(const std::string& path) {
    put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put("proc/self/cgroup", "0::" + path + "\n");
  }
  int num_threads(const std::vector<int>& cpus) { return num_threads_for(cpus, root_); }

  const fs::path root_ = fs::path(testing::TempDir()) / "pagoda_machine_test" /
                         testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(MachineTest, TellsWhatTheProcessUses) {
  const ProcessUsage unknown = process_usage(root_);
  EXPECT_EQ(unknown.cpu_s, -1);
  EXPECT_EQ(unknown.open_files, -1);
  put("proc/stat", "cpu 1 2 3\nbtime 1000\n");
  put("proc/self/status", "VmSize:\t 300 kB\nVmRSS:\t 200 kB\n");
  put("proc/self/limits", "Limit  Soft  Hard\nMax open files   1024   4096   files\n");
  for (const char* file : {"0", "1", "7"}) put(std::string("proc/self/fd/") + file, "");
  const auto ticks = [](int seconds) { return std::to_string(seconds * sysconf(_SC_CLK_TCK)); };
  put("proc/self/stat", "9 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 " + ticks(3) + " " + ticks(4) +
                            " 0 0 20 0 5 0 " + ticks(50) + " 0 0\n");
  const ProcessUsage usage = process_usage(root_);
  EXPECT_EQ(usage.cpu_s, 7);
  EXPECT_EQ(usage.start_s, 1050);
  EXPECT_EQ(usage.resident_bytes, 200 * 1024);
  EXPECT_EQ(usage.virtual_bytes, 300 * 1024);
  EXPECT_EQ(usage.open_files, 3);
  EXPECT_EQ(usage.max_open_files, 1024);
}

TEST_F(MachineTest, HyperThreadsOfACoreCountOnce) {
  put_hyper_threaded_cores();
  EXPECT_EQ(num_threads({0, 1, 2, 3, 4, 5, 6, 7}), 4);
}

TEST_F(MachineTest, OnlyAllowedCpusCount) {
  put_hyper_threaded_cores();
  EXPECT_EQ(num_threads({1, 5}), 1);
  EXPECT_EQ(num_threads({1, 2, 5}), 2);
}

TEST_F(MachineTest, WithoutTopologyEveryCpuIsACore) {
  EXPECT_EQ(num_threads({0, 1, 2}), 3);
}

TEST_F(MachineTest, AtLeastOneThread) {
  EXPECT_EQ(num_threads({}), 1);
  put_v2("/");
  put("sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(num_threads({0, 1}), 1);
}

TEST_F(MachineTest, TheQuotaOfCgroupsVersion2IsRoundedDown) {
  put_v2("/a/b");
  put("sys/fs/cgroup/a/b/cpu.max", "290000 100000\n");
  EXPECT_EQ(num_threads({0, 1, 2, 3}), 2);
}

TEST_F(MachineTest, AnOuterCgroupLimitsToo) {
  put_v2("/a/b");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(num_threads({0, 1, 2, 3}), 2);
}

TEST_F(MachineTest, AContainerSeesItsOwnGroupAtTheMount) {
  put_v2("/the/path/on/the/host");
  put("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(num_threads({0, 1, 2, 3}), 3);
}

TEST_F(MachineTest, TheQuotaOfCgroupsVersion1) {
  put("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/c\n");
  put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "250000\n");
  put("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(num_threads({0, 1, 2, 3}), 2);
  put("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(num_threads({0, 1, 2, 3}), 4);
}

TEST_F(MachineTest, SenselessFilesLimitNothing) {
  put_v2("/a");
  for (const std::string_view text : {"", "max", "nonsense", "100000", "100000 0", "-5 100000"}) {
    put("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(num_threads({0, 1, 2}), 3) << '"' << text << '"';
  }
}

TEST_F(MachineTest, MemoryIsWhatTheSystemSaysWhereNoCgroupLimits) {
  EXPECT_EQ(available_memory_bytes(root_), 4096 * kMiB);
}

TEST_F(MachineTest, MemoryOfCgroupsVersion2LeavesOutWhatTheKernelDropsFirst) {
  put_v2("/a");
  put("sys/fs/cgroup/a/memory.max", std::to_string(1000 * kMiB));
  put("sys/fs/cgroup/a/memory.current", std::to_string(700 * kMiB));
  EXPECT_EQ(available_memory_bytes(root_), 300 * kMiB);
  put("sys/fs/cgroup/a/memory.stat",
      "active_file 5\ninactive_file " + std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(available_memory_bytes(root_), 500 * kMiB);
}

TEST_F(MachineTest, MemoryOfCgroupsVersion1) {
  put("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/c\n");
  put("sys/fs/cgroup/memory/m/memory.limit_in_bytes", std::to_string(1000 * kMiB));
  put("sys/fs/cgroup/memory/m/memory.usage_in_bytes", std::to_string(600 * kMiB));
  put("sys/fs/cgroup/memory/m/memory.stat",
      "total_inactive_file " + std::to_string(100 * kMiB) + "\n");
  EXPECT_EQ(available_memory_bytes(root_), 500 * kMiB);
}

TEST_F(MachineTest, AFullCgroupLeavesNothing) {
  put_v2("/a");
  put("sys/fs/cgroup/a/memory.max", "1000");
  put("sys/fs/cgroup/a/memory.current", "2000");
  EXPECT_EQ(available_memory_bytes(root_), 0);
}

TEST_F(MachineTest, ALimitOfTheAddressSpaceLeavesWhatIsNotTaken) {
  const std::string row = "Max address space         ";
  put("proc/self/limits", row + "unlimited            unlimited            bytes\n");
  put("proc/self/status", "VmSize:\t  1024 kB\n");
  EXPECT_EQ(available_memory_bytes(root_), 4096 * kMiB);
  put("proc/self/limits", row + std::to_string(300 * kMiB) + "            unlimited     bytes\n");
  EXPECT_EQ(available_memory_bytes(root_), 299 * kMiB);
}

TEST_F(MachineTest, PeakResidentIsVmHwm) {
  put("proc/self/status", "Name:\tpagoda\nVmPeak:\t  999 kB\nVmHWM:\t  2048 kB\n");
  EXPECT_EQ(peak_resident_bytes(root_), 2 * kMiB);
}

TEST(Machine, AThreadThatLeavesItsCpuKeepsItsMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  for (int cpu = -1; cpu < 3; ++cpu) {
    leave_cpu(cpu < 0 ? current_cpu() : cpu);
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
}

// Kernels before 6.12 have no slices and report 0.
TEST(Machine, AThreadWithShortSlicesIsOtherwiseAsItWas) {
  std::thread([] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, gettid(), 3), 0);
    const auto attributes = [] {
      std::array<std::uint64_t, 6> words{};  // [1]: flags; [3]: the slice in nanoseconds
      EXPECT_EQ(syscall(SYS_sched_getattr, 0, words.data(), sizeof(words), 0), 0);
      return words;
    };
    std::array<std::uint64_t, 6> expected = attributes();
    if (expected[3] > 0) expected[3] = 100'000;
    ask_for_short_slices();
    EXPECT_EQ(attributes(), expected);
    EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), 3);
  }).join();
}

TEST(Machine, AThreadThatGivesWayIsNicerAndNoOtherIs) {
  const int before = getpriority(PRIO_PROCESS, gettid());
  std::thread([before] {
    give_way();
    EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), std::min(before + 5, 19));
    give_way();
    EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), std::min(before + 10, 19));
  }).join();
  EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), before);
}

TEST(Machine, ThisOneHasThreadsAndMemory) {
  EXPECT_GE(default_num_threads(), 1);
  EXPECT_GT(available_memory_bytes(), 64 * kMiB);
  const std::int64_t before = peak_resident_bytes();
  const std::vector<char> touched(64 * kMiB, 'x');
  EXPECT_GE(peak_resident_bytes(), before + 32 * kMiB) << touched.back();
}

}  // namespace
}  // namespace pagoda
