// As much of Objective-C as metal-cpp names.
#pragma once

using BOOL = bool;
struct objc_selector;
using SEL = objc_selector*;
struct objc_object {
  void* isa;
};

extern "C" {
void* objc_lookUpClass(const char* name);
void* objc_getProtocol(const char* name);
SEL sel_registerName(const char* name);
}
