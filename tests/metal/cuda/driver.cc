#include "tests/metal/cuda/driver.h"

#include <dlfcn.h>

namespace pagoda::metal_on_cuda {

Result<std::unique_ptr<Driver>> load_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return unavailable("[cuda] {}", dlerror());
  auto driver = std::make_unique<Driver>();
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(driver->init, "cuInit");
  find(driver->get_device, "cuDeviceGet");
  find(driver->get_name, "cuDeviceGetName");
  find(driver->retain_context, "cuDevicePrimaryCtxRetain");
  find(driver->set_context, "cuCtxSetCurrent");
  find(driver->synchronize, "cuCtxSynchronize");
  find(driver->get_error, "cuGetErrorString");
  find(driver->allocate, "cuMemAlloc_v2");
  find(driver->release, "cuMemFree_v2");
  find(driver->fill, "cuMemsetD8_v2");
  find(driver->copy_in, "cuMemcpyHtoD_v2");
  find(driver->copy_out, "cuMemcpyDtoH_v2");
  find(driver->load_module, "cuModuleLoad");
  find(driver->get_function, "cuModuleGetFunction");
  find(driver->launch, "cuLaunchKernel");
  find(driver->make_stream, "cuStreamCreate");
  find(driver->begin_capture, "cuStreamBeginCapture_v2");
  find(driver->end_capture, "cuStreamEndCapture");
  find(driver->instantiate, "cuGraphInstantiateWithFlags");
  find(driver->launch_graph, "cuGraphLaunch");
  find(driver->destroy_exec, "cuGraphExecDestroy");
  find(driver->destroy_graph, "cuGraphDestroy");
  find(driver->make_event, "cuEventCreate");
  find(driver->record_event, "cuEventRecord");
  find(driver->wait_for_event, "cuEventSynchronize");
  find(driver->milliseconds, "cuEventElapsedTime");
  if (missing != nullptr) return unavailable("[cuda] the driver has no {}", missing);
  return driver;
}

}  // namespace pagoda::metal_on_cuda
