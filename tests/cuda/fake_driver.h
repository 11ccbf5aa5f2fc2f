// A driver of CUDA's without a GPU. Memory is the host's. A stream is a queue whose work runs when
// the host waits for it, so that a test sees what waits for what. A kernel is a function of the
// test's, found by the name of its entry point.
//
// There is one fake, of which a test makes a new one. Misuse fails a check: memory that was never
// allocated, work on a destroyed stream, a release of what is not there. A graph's copy to memory
// that has been released since fails one, too.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/compiler.h"
#include "backend/cuda/driver.h"

namespace pagoda::cuda {

// A launch as the driver sees it.
struct FakeLaunch {
  std::string kernel;  // the entry point's name
  std::array<unsigned, 3> num_groups = {};
  unsigned num_threads = 0;
  unsigned shared_bytes = 0;
  std::vector<std::byte> argument;

  // Returns the address of the kernel's buffer, which is also the host's.
  std::byte* buffer(std::size_t index) const;
};

struct FakeOptions {
  int major = 9;  // of the compute capability
  int minor = 0;
  std::size_t memory_bytes = std::size_t{1} << 40;
  int num_devices = 1;
};

class FakeDriver {
 public:
  explicit FakeDriver(const FakeOptions& options = {});
  ~FakeDriver();  // expects that everything was returned
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  std::shared_ptr<const Driver> table() const;

  // Functions of kernels, by entry point; other kernels do nothing.
  std::map<std::string, std::function<void(const FakeLaunch&)>> kernels;
  // Fails the n-th call from now on; 0: none.
  void fail_call(int n) { calls_until_failure_ = n; }
  int num_calls() const { return num_calls_; }
  std::size_t num_allocations() const { return device_memory_.size() + host_memory_.size(); }
  std::size_t num_launches() const { return num_launches_; }
  std::size_t num_waiting() const;  // pieces of work that have not run
  std::size_t num_graphs() const { return graph_execs_.size(); }

 private:
  friend struct FakeCalls;
  using Work = std::function<void()>;
  struct Function {
    std::string name;
    std::size_t argument_bytes = 0;
  };

  struct Allocation {
    std::size_t size = 0;
    std::uintptr_t serial = 0;
  };
  std::map<Address, Allocation> device_memory_;
  std::set<void*> host_memory_;
  std::map<CuStream*, std::queue<Work>> streams_;
  std::map<CuEvent*, CuStream*> events_;  // and where each was last recorded
  std::map<CuEvent*, bool> has_happened_;
  std::map<CuStream*, std::vector<Work>> captures_;  // of streams that are being captured
  std::map<CuGraph*, std::vector<Work>> graphs_;
  std::map<CuGraphExec*, std::vector<Work>> graph_execs_;
  std::map<CuModule*, std::string> modules_;
  std::map<CuFunction*, Function> functions_;
  std::size_t allocated_bytes_ = 0;
  std::uintptr_t last_handle_ = 0;
  int num_contexts_ = 0;
  int num_calls_ = 0;
  int calls_until_failure_ = 0;
  std::size_t num_launches_ = 0;
  FakeOptions options_;
};

// A compiler whose binary is the text itself.
class FakeCompiler final : public Compiler {
 public:
  Result<std::string> compile(const std::string& text, const std::string& name,
                              const std::string& architecture) override;
  std::string identity() const override { return "fake"; }
  int major_version() const override { return 12; }
  int num_compiled() const { return num_compiled_; }

 private:
  std::atomic<int> num_compiled_ = 0;
};

}  // namespace pagoda::cuda
