#include "backend/cuda/driver.h"

#include <dlfcn.h>

#include <type_traits>

namespace pagoda::cuda {

Status Driver::status_of(CuResult result, std::string_view call) const {
  if (result == kCuSuccess) return ok_status();
  const char* text = nullptr;
  get_error(result, &text);
  if (text == nullptr) text = "an error that the driver does not name";
  if (result == kCuOutOfMemory) return resource_exhausted("[cuda] {}: {}", call, text);
  return unavailable("[cuda] {}: {}", call, text);
}

Result<std::shared_ptr<const Driver>> load_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unavailable("[device] cuda: expected NVIDIA's driver (libcuda.so.1), got: {}",
                       dlerror());
  }
  auto driver = std::make_shared<Driver>();
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(driver->init, "cuInit");
  find(driver->get_version, "cuDriverGetVersion");
  find(driver->count_devices, "cuDeviceGetCount");
  find(driver->get_device, "cuDeviceGet");
  find(driver->get_name, "cuDeviceGetName");
  find(driver->get_attribute, "cuDeviceGetAttribute");
  find(driver->get_memory, "cuMemGetInfo_v2");
  find(driver->retain_context, "cuDevicePrimaryCtxRetain");
  find(driver->release_context, "cuDevicePrimaryCtxRelease_v2");
  find(driver->set_context, "cuCtxSetCurrent");
  find(driver->get_error, "cuGetErrorString");
  find(driver->allocate, "cuMemAlloc_v2");
  find(driver->release, "cuMemFree_v2");
  find(driver->allocate_host, "cuMemAllocHost_v2");
  find(driver->release_host, "cuMemFreeHost");
  find(driver->fill, "cuMemsetD8Async");
  find(driver->copy_in, "cuMemcpyHtoDAsync_v2");
  find(driver->copy_out, "cuMemcpyDtoHAsync_v2");
  find(driver->load_module, "cuModuleLoadData");
  find(driver->unload_module, "cuModuleUnload");
  find(driver->get_function, "cuModuleGetFunction");
  find(driver->launch, "cuLaunchKernel");
  find(driver->make_stream, "cuStreamCreate");
  find(driver->destroy_stream, "cuStreamDestroy_v2");
  find(driver->synchronize, "cuStreamSynchronize");
  find(driver->begin_capture, "cuStreamBeginCapture_v2");
  find(driver->end_capture, "cuStreamEndCapture");
  find(driver->instantiate_graph, "cuGraphInstantiateWithFlags");
  find(driver->launch_graph, "cuGraphLaunch");
  find(driver->destroy_graph, "cuGraphDestroy");
  find(driver->destroy_graph_exec, "cuGraphExecDestroy");
  find(driver->make_event, "cuEventCreate");
  find(driver->destroy_event, "cuEventDestroy_v2");
  find(driver->record_event, "cuEventRecord");
  find(driver->synchronize_event, "cuEventSynchronize");
  if (missing != nullptr) {
    return unavailable("[device] cuda: expected a newer driver of NVIDIA's, got one without {}",
                       missing);
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

}  // namespace pagoda::cuda
