#include "backend/gpu/gpu_launch.h"

namespace pagoda::gpu {

std::string GpuFunction::binary_name() const {
  std::string result(name);
  for (const std::string_view argument : arguments) {
    result += '_';
    result += argument;
  }
  return result;
}

std::string GpuFunction::text() const {
  std::string result(source->text);
  if (arguments.empty()) return result;
  std::string instance(name);
  instance += '<';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i > 0) instance += ", ";
    instance += arguments[i];
  }
  instance += '>';
  result += "\ntemplate [[host_name(\"";
  result += binary_name();
  result += "\")]] [[kernel]] decltype(";
  result += instance;
  result += ") ";
  result += instance;
  result += ";\n";
  return result;
}

}  // namespace pagoda::gpu
