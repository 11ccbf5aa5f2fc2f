// NativeExec: the common part of reference and cpu, the backends whose ops run at once on the host.
//
// Results are in an arena (tensor/arena.h), so a steady step allocates nothing and uses the same
// addresses every time. Nothing is lazy: evaluate() has nothing to do, and read() returns the
// memory itself.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/arena.h"
#include "tensor/exec.h"

namespace pagoda {

class NativeExec : public Exec {
 public:
  Tensor allocate(DType dtype, const Shape& shape) override;
  Result<Tensor> allocate_persistent(DType dtype, const Shape& shape) override;
  std::byte* host_address(const Tensor& persistent) override { return persistent.first_byte(); }
  void prefault(const Tensor& tensor) override;
  Tensor upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) override;
  using Exec::upload;
  void upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) override;
  bool writes_in_place() const override { return true; }
  using Exec::write;
  void write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes) override;
  Status evaluate(std::span<const Tensor> roots) override;
  Result<std::span<const std::byte>> read(const Tensor& tensor) override;

  // Memory for allocations in the Loan's lifetime, so that a result is written where the lender
  // wants it: the next allocation of the same size gets the memory. The lender must check the
  // result's address, because an op may allocate scratch of that size first.
  class Loan {
   public:
    explicit Loan(NativeExec& exec) : exec_(exec) {}
    ~Loan() { exec_.lent_.clear(); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    // Adds memory that covers whole cache lines.
    void add(BufferRef memory) { exec_.lent_.push_back(std::move(memory)); }

   private:
    NativeExec& exec_;
  };

  // Allocates memory for packed weights; later calls get higher addresses. kResourceExhausted if
  // the machine has less memory free.
  Result<BufferRef> allocate_weight_bytes(std::size_t bytes);

 protected:
  struct Arenas {
    std::shared_ptr<Arena> step;
    std::shared_ptr<Arena> weights;
    bool huge_pages = false;  // for persistent memory too
  };
  static Result<Arenas> make_arenas(bool huge_pages);

  NativeExec(Backend backend, Arenas arenas) : Exec(backend), arenas_(std::move(arenas)) {}

 private:
  // Checks that `bytes` of memory are free. Else kResourceExhausted; `what`, in its message, names
  // their use.
  Status expect_free(std::int64_t bytes, std::string_view what);

  Arenas arenas_;
  std::vector<BufferRef> lent_;
  std::int64_t known_free_bytes_ = 0;  // bytes to allocate before the system is asked again
};

}  // namespace pagoda
