// The part of CUDA's driver that the harness calls. It is loaded at run time, so that the harness
// builds without CUDA.
#pragma once

#include <cstddef>
#include <memory>

#include "core/status.h"

namespace pagoda::metal_on_cuda {

// Types and constants as in cuda.h, whose binary interface is stable.
using CuResult = int;
using CuAddress = unsigned long long;
struct CuContextObject;
struct CuEventObject;
struct CuFunctionObject;
struct CuGraphObject;
struct CuGraphExecObject;
struct CuModuleObject;
struct CuStreamObject;

struct Driver {
  CuResult (*init)(unsigned flags);
  CuResult (*get_device)(int* device, int ordinal);
  CuResult (*get_name)(char* name, int size, int device);
  CuResult (*retain_context)(CuContextObject** context, int device);
  CuResult (*set_context)(CuContextObject* context);
  CuResult (*synchronize)();
  CuResult (*get_error)(CuResult error, const char** text);
  CuResult (*allocate)(CuAddress* address, std::size_t bytes);
  CuResult (*release)(CuAddress address);
  CuResult (*fill)(CuAddress address, unsigned char value, std::size_t bytes);
  CuResult (*copy_in)(CuAddress to, const void* from, std::size_t bytes);
  CuResult (*copy_out)(void* to, CuAddress from, std::size_t bytes);
  CuResult (*load_module)(CuModuleObject** module, const char* path);
  CuResult (*get_function)(CuFunctionObject** function, CuModuleObject* module, const char* name);
  CuResult (*launch)(CuFunctionObject* function, unsigned groups_x, unsigned groups_y,
                     unsigned groups_z, unsigned threads_x, unsigned threads_y, unsigned threads_z,
                     unsigned shared_bytes, CuStreamObject* stream, void** arguments, void** extra);
  CuResult (*make_stream)(CuStreamObject** stream, unsigned flags);
  CuResult (*begin_capture)(CuStreamObject* stream, int mode);
  CuResult (*end_capture)(CuStreamObject* stream, CuGraphObject** graph);
  CuResult (*instantiate)(CuGraphExecObject** exec, CuGraphObject* graph, unsigned long long flags);
  CuResult (*launch_graph)(CuGraphExecObject* exec, CuStreamObject* stream);
  CuResult (*destroy_exec)(CuGraphExecObject* exec);
  CuResult (*destroy_graph)(CuGraphObject* graph);
  CuResult (*make_event)(CuEventObject** event, unsigned flags);
  CuResult (*record_event)(CuEventObject* event, CuStreamObject* stream);
  CuResult (*wait_for_event)(CuEventObject* event);
  CuResult (*milliseconds)(float* time, CuEventObject* begin, CuEventObject* end);
};

// Loads the driver. kUnavailable if there is none.
Result<std::unique_ptr<Driver>> load_driver();

}  // namespace pagoda::metal_on_cuda
