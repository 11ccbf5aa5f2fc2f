// As much of metal-cpp as MLX's metal/device.h names, for compilers that know neither Objective-C
// nor its blocks. Messages to the encoder are virtual calls, which tests/metal/stand_in_recorder.h
// answers; of the other types there are only pointers.
#pragma once

#include <cstdint>
#include <memory>

namespace NS {

using UInteger = std::uintptr_t;
class AutoreleasePool;
class Error;

template <typename T>
class SharedPtr {
 public:
  SharedPtr() = default;
  explicit SharedPtr(std::shared_ptr<T> object) : object_(std::move(object)) {}

  T* get() const { return object_.get(); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace NS

namespace MTL {

class Allocation;
class Buffer;
class CommandBuffer;
class CommandQueue;
class ComputePipelineState;
class Device;
class Fence;
class Function;
class Library;
class LinkedFunctions;
class ResidencySet;
class Resource;
enum DataType : NS::UInteger;

struct Size {
  Size(NS::UInteger x, NS::UInteger y, NS::UInteger z) : width(x), height(y), depth(z) {}

  NS::UInteger width;
  NS::UInteger height;
  NS::UInteger depth;
};

class ComputeCommandEncoder {
 public:
  virtual ~ComputeCommandEncoder() = default;

  virtual void setComputePipelineState(const ComputePipelineState* pipeline) = 0;
  virtual void setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) = 0;
  virtual void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) = 0;
};

}  // namespace MTL
