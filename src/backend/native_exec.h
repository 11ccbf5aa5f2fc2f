// NativeExec: what the backends share whose ops run at once on the host, reference and cpu.
//
// Results live in an arena (tensor/arena.h), so a steady step allocates nothing and takes the same
// addresses every time. Nothing is lazy: evaluate() has nothing to do and read() hands out the
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

  // Memory that allocations take while this lives, so that a result lies where the lender wants it:
  // the next allocation of as many bytes has it. The lender checks the result's address, because an
  // op may ask for scratch of that size first.
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

  // Allocates memory for packed weights, in ascending order of the calls. kResourceExhausted where
  // the machine has less.
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
  // Checks the memory that is free. kResourceExhausted where the machine has not so many bytes left
  // for `what`.
  Status expect_free(std::int64_t bytes, std::string_view what);

  Arenas arenas_;
  std::vector<BufferRef> lent_;
  std::int64_t known_free_bytes_ = 0;  // what may still be taken before the machine is asked again
};

}  // namespace pagoda
