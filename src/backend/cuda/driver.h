// The part of CUDA's driver that the backend calls, as a table of functions. The driver is loaded
// at run time, so that the binary starts on machines without it. Tests fill the table with
// functions of their own.
//
// Types and constants are those of cuda.h, whose binary interface is stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/status.h"

namespace pagoda::cuda {

using Address = unsigned long long;  // of the device's memory
struct CuContext;
struct CuEvent;
struct CuFunction;
struct CuGraph;
struct CuGraphExec;
struct CuModule;
struct CuStream;

using CuResult = int;
inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuOutOfMemory = 2;

// Attributes of a device (CUdevice_attribute).
enum class CuAttribute : int { kMajor = 75, kMinor = 76 };

inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventDisableTiming = 2;
inline constexpr int kCuCaptureRelaxed = 2;  // other threads' calls do not disturb a capture

struct Driver {
  CuResult (*init)(unsigned flags);
  CuResult (*get_version)(int* version);  // 13000: CUDA 13.0
  CuResult (*count_devices)(int* count);
  CuResult (*get_device)(int* device, int ordinal);
  CuResult (*get_name)(char* name, int size, int device);
  CuResult (*get_attribute)(int* value, CuAttribute attribute, int device);
  CuResult (*get_memory)(std::size_t* free, std::size_t* total);
  CuResult (*retain_context)(CuContext** context, int device);
  CuResult (*release_context)(int device);
  CuResult (*set_context)(CuContext* context);
  CuResult (*get_error)(CuResult error, const char** text);

  CuResult (*allocate)(Address* address, std::size_t bytes);
  CuResult (*release)(Address address);
  CuResult (*allocate_host)(void** address, std::size_t bytes);  // pinned
  CuResult (*release_host)(void* address);
  CuResult (*fill)(Address address, unsigned char value, std::size_t bytes, CuStream* stream);
  CuResult (*copy_in)(Address to, const void* from, std::size_t bytes, CuStream* stream);
  CuResult (*copy_out)(void* to, Address from, std::size_t bytes, CuStream* stream);

  CuResult (*load_module)(CuModule** module, const void* image);
  CuResult (*unload_module)(CuModule* module);
  CuResult (*get_function)(CuFunction** function, CuModule* module, const char* name);
  CuResult (*launch)(CuFunction* function, unsigned groups_x, unsigned groups_y, unsigned groups_z,
                     unsigned threads_x, unsigned threads_y, unsigned threads_z,
                     unsigned shared_bytes, CuStream* stream, void** arguments, void** extra);

  CuResult (*make_stream)(CuStream** stream, unsigned flags);
  CuResult (*destroy_stream)(CuStream* stream);
  CuResult (*synchronize)(CuStream* stream);
  CuResult (*begin_capture)(CuStream* stream, int mode);
  CuResult (*end_capture)(CuStream* stream, CuGraph** graph);
  CuResult (*instantiate_graph)(CuGraphExec** exec, CuGraph* graph, unsigned long long flags);
  CuResult (*launch_graph)(CuGraphExec* exec, CuStream* stream);
  CuResult (*destroy_graph)(CuGraph* graph);
  CuResult (*destroy_graph_exec)(CuGraphExec* exec);
  CuResult (*make_event)(CuEvent** event, unsigned flags);
  CuResult (*destroy_event)(CuEvent* event);
  CuResult (*record_event)(CuEvent* event, CuStream* stream);
  CuResult (*synchronize_event)(CuEvent* event);

  // Returns the error of a call: kResourceExhausted if memory lacks, else kUnavailable, with the
  // driver's words.
  Status status_of(CuResult result, std::string_view call) const;
};

// Loads libcuda.so.1. kUnavailable if the machine lacks it, or if it is older than what the backend
// needs.
Result<std::shared_ptr<const Driver>> load_driver();

}  // namespace pagoda::cuda
