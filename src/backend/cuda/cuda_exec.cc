#include "backend/cuda/cuda_exec.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "tensor/num_bytes.h"

namespace pagoda::cuda {
namespace {

// Evaluations that may be on their way. More would only queue up, with the memory that they hold.
constexpr std::size_t kMostInFlight = 4;
// Values of weights that are on their way to the GPU.
constexpr std::size_t kMostStaged = std::size_t{64} << 20;
constexpr int kMostGroups = 65535;  // in y and z

constexpr std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kUnit = DeviceArena::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// Returns the memory of a result that the GPU had no room for. Nothing reads or writes it.
BufferRef no_memory(std::size_t bytes) {
  class Missing final : public DeviceBuffer {
   public:
    explicit Missing(std::size_t size) : DeviceBuffer(0, size, /*is_persistent=*/false) {}

   private:
    void release() override { delete this; }
  };
  return BufferRef(new Missing(bytes));
}

// Returns the host's copy of a tensor's values.
std::vector<std::byte>& copy_of(const Tensor& tensor) {
  const std::size_t size = num_bytes(tensor.dtype(), tensor.shape());
  std::vector<std::byte>& copy = buffer_of(tensor).copies[{byte_offset(tensor), size}];
  copy.resize(size);
  return copy;
}

void check_groups(const gpu::GpuDispatch& dispatch) {
  PAGODA_CHECK(dispatch.num_groups[1] <= kMostGroups && dispatch.num_groups[2] <= kMostGroups,
               fmt::format("[cuda] {}: expected at most {} groups in y and z, got {} and {}",
                           dispatch.function.binary_name(), kMostGroups, dispatch.num_groups[1],
                           dispatch.num_groups[2]));
}

}  // namespace

Result<std::unique_ptr<CudaExec>> CudaExec::create(std::shared_ptr<Device> device,
                                                   std::shared_ptr<Compiler> compiler,
                                                   std::filesystem::path kernel_folder) {
  std::unique_ptr<CudaExec> exec(
      new CudaExec(std::move(device), std::move(compiler), std::move(kernel_folder)));
  PAGODA_RETURN_IF_ERROR(exec->make_streams());
  return exec;
}

CudaExec::CudaExec(std::shared_ptr<Device> device, std::shared_ptr<Compiler> compiler,
                   std::filesystem::path kernel_folder)
    : GpuExec(Backend::kCuda),
      device_(std::move(device)),
      compiler_(std::move(compiler)),
      kernels_(device_, compiler_, std::move(kernel_folder)),
      arena_(std::make_shared<DeviceArena>(device_)),
      staging_(device_) {
  const char* const wish = std::getenv("PAGODA_CUDA_GRAPHS");
  if (wish == nullptr || std::string_view(wish) != "off")
    graphs_ = std::make_unique<GraphCache>(device_);
}

Status CudaExec::make_streams() {
  const Driver& driver = device_->driver();
  device_->make_current();
  for (CuStream** const stream : {&stream_, &read_stream_}) {
    PAGODA_RETURN_IF_ERROR(
        driver.status_of(driver.make_stream(stream, kCuStreamNonBlocking), "making a stream"));
  }
  return ok_status();
}

CudaExec::~CudaExec() {
  const Driver& driver = device_->driver();
  device_->make_current();
  for (CuStream* const stream : {stream_, read_stream_}) {
    if (stream == nullptr) continue;
    (void)driver.synchronize(stream);
    (void)driver.destroy_stream(stream);
  }
  for (const Evaluation& each : in_flight_) (void)driver.destroy_event(each.done);
  for (CuEvent* const event : free_events_) (void)driver.destroy_event(event);
}

// Recording.

std::vector<Tensor> CudaExec::run(gpu::GpuOp op) {
  std::vector<Tensor> outputs;
  for (const gpu::OpOutput& output : op.outputs) {
    if (output.memory_of == gpu::kFresh) {
      outputs.emplace_back(new_result(num_bytes(output.dtype, output.shape)), output.dtype,
                           output.shape);
    } else {
      const Tensor& input = op.inputs[static_cast<std::size_t>(output.memory_of)];
      buffer_of(input).evaluation = num_evaluations_ + 1;
      outputs.emplace_back(input.buffer(), output.dtype, output.shape, input.offset());
    }
  }
  if (listed_ != nullptr) {
    list_kernels(op.launch);
    return outputs;
  }
  for (const Tensor& input : op.inputs) keep(input.buffer());
  std::vector<BufferRef> scratch;
  for (const std::size_t bytes : op.launch.scratch_bytes) scratch.push_back(new_result(bytes));
  const auto address = [&](const gpu::GpuOperand& operand) {
    const auto i = static_cast<std::size_t>(operand.index);
    switch (operand.kind) {
      case gpu::GpuOperand::Kind::kInput:
        return address_of(op.inputs[i]);
      case gpu::GpuOperand::Kind::kOutput:
        return address_of(outputs[i]);
      case gpu::GpuOperand::Kind::kScratch:
        break;
    }
    return static_cast<DeviceBuffer&>(*scratch[i].get()).address();
  };
  for (const gpu::GpuDispatch& dispatch : op.launch.dispatches) {
    const auto [x, y, z] = dispatch.num_groups;
    if (x == 0 || y == 0 || z == 0) continue;  // an op without rows has no groups
    std::vector<Address> buffers;
    for (const gpu::GpuOperand& operand : dispatch.buffers) buffers.push_back(address(operand));
    record(dispatch, buffers);
  }
  return outputs;
}

BufferRef CudaExec::new_result(std::size_t bytes) {
  Result<BufferRef> made = arena_->allocate(bytes);
  if (!made.ok()) {
    fail(made.status());
    return no_memory(bytes);
  }
  static_cast<DeviceBuffer&>(*made->get()).evaluation = num_evaluations_ + 1;
  return *std::move(made);
}

void CudaExec::record(const gpu::GpuDispatch& dispatch, std::span<const Address> buffers) {
  check_groups(dispatch);
  const Result<CuFunction*> function = kernels_.find(dispatch);
  if (!function.ok()) return fail(function.status());
  LaunchList::Kernel kernel{.function = *function,
                            .num_groups = {},
                            .num_threads = static_cast<unsigned>(dispatch.num_threads),
                            .shared_bytes = static_cast<unsigned>(dispatch.threadgroup_bytes)};
  for (std::size_t i = 0; i < kernel.num_groups.size(); ++i)
    kernel.num_groups[i] = static_cast<unsigned>(dispatch.num_groups[i]);
  const gpu::GpuParameters& parameters = dispatch.parameters;
  std::byte* const argument =
      recorded_.add(kernel, argument_bytes(buffers.size(), parameters.size()));
  std::memcpy(argument, buffers.data(), buffers.size_bytes());
  std::memcpy(argument + parameters_begin(buffers.size()), parameters.data(), parameters.size());
}

Result<std::byte*> CudaExec::stage(const BufferRef& to, std::size_t begin, std::size_t bytes) {
  PAGODA_ASSIGN_OR_RETURN(std::byte* const staged, staging_.take(bytes));
  auto& buffer = static_cast<DeviceBuffer&>(*to.get());
  buffer.evaluation = num_evaluations_ + 1;
  keep(to);
  recorded_.add_copy(buffer.address() + begin, staged, bytes, buffer.is_persistent());
  return staged;
}

std::byte* CudaExec::stage_or_fail(const BufferRef& to, std::size_t begin, std::size_t bytes) {
  if (bytes == 0 || listed_ != nullptr) return nullptr;
  const Result<std::byte*> staged = stage(to, begin, bytes);
  if (staged.ok()) return *staged;
  fail(staged.status());
  return nullptr;
}

void CudaExec::list_kernels(const gpu::GpuLaunch& launch) {
  for (const gpu::GpuDispatch& dispatch : launch.dispatches) {
    const KernelShape kernel = shape_of(dispatch);
    const bool is_listed =
        std::any_of(listed_->begin(), listed_->end(), [&](const KernelShape& each) {
          return each.num_threads == kernel.num_threads && entry_name(each) == entry_name(kernel);
        });
    if (!is_listed) listed_->push_back(kernel);
  }
}

// Holds persistent memory until the launches that were recorded with it have been submitted. A
// result needs no holder: it returns to the arena, which follows the order of the stream.
void CudaExec::keep(const BufferRef& memory) {
  if (static_cast<DeviceBuffer&>(*memory.get()).is_persistent()) kept_.push_back(memory);
}

void CudaExec::fail(const Status& status) {
  if (error_.ok()) error_ = status;
}

void CudaExec::drop_recorded() {
  recorded_.clear();
  kept_.clear();
}

// Memory.

Tensor CudaExec::allocate(DType, const Shape&) {
  PAGODA_CHECK(false, "[cuda] expected ops to return what they build, got a call of allocate");
}

Result<Tensor> CudaExec::allocate_persistent(DType dtype, const Shape& shape) {
  const std::size_t bytes = num_bytes(dtype, shape);
  PAGODA_ASSIGN_OR_RETURN(const BufferRef buffer, allocate_persistent_bytes(device_, bytes));
  if (bytes > 0) {
    const Driver& driver = device_->driver();
    const Address address = static_cast<DeviceBuffer&>(*buffer.get()).address();
    PAGODA_RETURN_IF_ERROR(
        driver.status_of(driver.fill(address, 0, bytes, stream_), "clearing memory"));
  }
  return Tensor(buffer, dtype, shape);
}

Status CudaExec::fill(const Tensor& persistent, std::int64_t first, std::int64_t count,
                      const std::function<void(std::uint32_t* values)>& write) {
  const std::size_t begin = static_cast<std::size_t>(first) * sizeof(std::uint32_t);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::uint32_t);
  PAGODA_ASSIGN_OR_RETURN(std::byte* const staged,
                          stage(persistent.buffer(), byte_offset(persistent) + begin, bytes));
  std::memset(staged, 0, bytes);
  write(reinterpret_cast<std::uint32_t*>(staged));
  return staging_.taken_bytes() < kMostStaged / kMostInFlight ? ok_status() : submit();
}

Tensor CudaExec::upload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  const HostArray array = {dtype, shape, bytes};
  Tensor tensor;
  upload_packet({&array, 1}, {&tensor, 1});
  return tensor;
}

// Uploads all arrays to one span of the arena, by one copy.
void CudaExec::upload_packet(std::span<const HostArray> arrays, std::span<Tensor> tensors) {
  std::size_t total = 0;
  for (const HostArray& array : arrays) {
    PAGODA_CHECK(array.bytes.size() == num_bytes(array.dtype, array.shape),
                 fmt::format("[upload] expected {} bytes for {}, got {}",
                             num_bytes(array.dtype, array.shape), to_string(array.shape),
                             array.bytes.size()));
    total += round_up(array.bytes.size());
  }
  const BufferRef buffer = new_result(total);
  std::byte* const staged = stage_or_fail(buffer, 0, total);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const HostArray& array = arrays[i];
    tensors[i] = Tensor(buffer, array.dtype, array.shape,
                        static_cast<std::int64_t>(begin / dtype_size(array.dtype)));
    if (staged != nullptr) std::copy(array.bytes.begin(), array.bytes.end(), staged + begin);
    begin += round_up(array.bytes.size());
  }
}

void CudaExec::write(const Tensor& tensor, std::int64_t first, std::span<const std::byte> bytes) {
  const std::size_t begin = static_cast<std::size_t>(first) * dtype_size(tensor.dtype());
  const std::size_t size = num_bytes(tensor.dtype(), tensor.shape());
  PAGODA_CHECK(begin <= size && bytes.size() <= size - begin, "[exec] a write past a tensor's end");
  std::byte* const staged =
      stage_or_fail(tensor.buffer(), byte_offset(tensor) + begin, bytes.size());
  if (staged != nullptr) std::copy(bytes.begin(), bytes.end(), staged);
}

// Computing.

Status CudaExec::evaluate(std::span<const Tensor> /*roots*/) {
  if (!error_.ok()) {
    drop_recorded();
    return std::exchange(error_, Status());
  }
  return recorded_.empty() ? ok_status() : submit();
}

Status CudaExec::submit() {
  const Driver& driver = device_->driver();
  device_->make_current();
  PAGODA_RETURN_IF_ERROR(graphs_ ? graphs_->submit(recorded_, stream_)
                                 : recorded_.submit(driver, stream_));
  drop_recorded();
  Evaluation evaluation{.number = ++num_evaluations_, .done = nullptr};
  if (free_events_.empty()) {
    PAGODA_RETURN_IF_ERROR(driver.status_of(
        driver.make_event(&evaluation.done, kCuEventDisableTiming), "making an event"));
  } else {
    evaluation.done = free_events_.back();
    free_events_.pop_back();
  }
  in_flight_.push_back(evaluation);
  PAGODA_RETURN_IF_ERROR(
      driver.status_of(driver.record_event(evaluation.done, stream_), "recording an event"));
  staging_.hand_over(evaluation.number);
  if (in_flight_.size() <= kMostInFlight) return ok_status();
  return wait_for(in_flight_.front().number);
}

Status CudaExec::wait_for(std::uint64_t evaluation) {
  if (evaluation <= num_done_) return ok_status();
  const Driver& driver = device_->driver();
  device_->make_current();
  while (!in_flight_.empty() && in_flight_.front().number <= evaluation) {
    const Evaluation first = in_flight_.front();
    PAGODA_RETURN_IF_ERROR(
        driver.status_of(driver.synchronize_event(first.done), "computing a step"));
    in_flight_.pop_front();
    free_events_.push_back(first.done);
    num_done_ = first.number;
  }
  staging_.set_done(num_done_);
  return ok_status();
}

Result<std::span<const std::byte>> CudaExec::read(const Tensor& tensor) {
  PAGODA_RETURN_IF_ERROR(start_read(tensor));
  PAGODA_RETURN_IF_ERROR(finish_reads());
  return std::span<const std::byte>(copy_of(tensor));
}

Status CudaExec::read_packet(std::span<const Tensor> tensors,
                             std::span<std::span<const std::byte>> values) {
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) PAGODA_RETURN_IF_ERROR(start_read(tensor));
  }
  PAGODA_RETURN_IF_ERROR(finish_reads());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    values[i] = {};
    if (tensors[i].defined()) values[i] = copy_of(tensors[i]);
  }
  return ok_status();
}

Status CudaExec::start_read(const Tensor& tensor) {
  PAGODA_CHECK(tensor.is_contiguous(), "[read] expected a contiguous tensor");
  DeviceBuffer& buffer = buffer_of(tensor);
  if (buffer.evaluation > num_evaluations_) PAGODA_RETURN_IF_ERROR(evaluate({&tensor, 1}));
  PAGODA_RETURN_IF_ERROR(wait_for(std::min(buffer.evaluation, num_evaluations_)));
  const std::size_t size = num_bytes(tensor.dtype(), tensor.shape());
  if (size == 0) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(std::byte* const staged, staging_.take(size));
  const Driver& driver = device_->driver();
  device_->make_current();
  PAGODA_RETURN_IF_ERROR(driver.status_of(
      driver.copy_out(staged, address_of(tensor), size, read_stream_), "copying from the GPU"));
  reads_.push_back({.tensor = tensor, .staged = staged});
  return ok_status();
}

Status CudaExec::finish_reads() {
  const std::vector<CopyOut> reads = std::exchange(reads_, {});
  const Driver& driver = device_->driver();
  PAGODA_RETURN_IF_ERROR(
      driver.status_of(driver.synchronize(read_stream_), "copying from the GPU"));
  for (const CopyOut& read : reads) {
    std::vector<std::byte>& copy = copy_of(read.tensor);
    std::copy_n(read.staged, copy.size(), copy.begin());
  }
  return ok_status();
}

Status CudaExec::finish() {
  PAGODA_RETURN_IF_ERROR(evaluate({}));
  return wait_for(num_evaluations_);
}

// Kernels.

Status CudaExec::prepare_kernels(const std::function<void()>& call_ops,
                                 const std::function<void(double)>& progress) {
  PAGODA_RETURN_IF_ERROR(finish());  // what loading has recorded
  std::vector<KernelShape> kernels;
  listed_ = &kernels;
  call_ops();
  listed_ = nullptr;
  PAGODA_RETURN_IF_ERROR(std::exchange(error_, Status()));
  PAGODA_RETURN_IF_ERROR(kernels_.build(kernels, progress));
  num_late_before_ = kernels_.num_late();
  return ok_status();
}

std::string CudaExec::arithmetic() const {
  return fmt::format("{} on {}", backend_name(backend()), device_->architecture());
}

std::string CudaExec::describe() const {
  return fmt::format("{}, {}, {:.1f} GiB; {}", device_->name(), device_->architecture(),
                     static_cast<double>(device_->total_bytes()) / (1 << 30),
                     compiler_->identity().substr(0, compiler_->identity().find(" --")));
}

ExecCounters CudaExec::counters() const {
  return {.num_evaluations = num_evaluations_,
          .num_late_kernels = kernels_.num_late() - num_late_before_};
}

// Returns nine tenths of what is free: results and the driver take the rest.
std::int64_t CudaExec::available_bytes() const {
  return static_cast<std::int64_t>(device_->free_bytes() / 10 * 9);
}

}  // namespace pagoda::cuda
