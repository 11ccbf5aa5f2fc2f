// As much of CoreFoundation as metal-cpp names.
#pragma once

#include <cstdint>

using CFTimeInterval = double;
struct __CFString;
using CFStringRef = const __CFString*;

extern "C" CFStringRef __CFStringMakeConstantString(const char* text);
