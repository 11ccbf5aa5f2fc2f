// The minimal runtime of clang's UndefinedBehaviorSanitizer. A kernel's traced build calls it, and
// it fails the run.
#include "tests/metal/emulator/machine.h"

namespace pagoda::emulator {
namespace {

[[noreturn]] void fail(const char* what) {
  Machine& machine = Machine::running();
  machine.note_error(what);
  machine.stop();
}

}  // namespace
}  // namespace pagoda::emulator

#define PAGODA_UNDEFINED(NAME, WHAT)                 \
  extern "C" void __ubsan_handle_##NAME##_minimal(); \
  void __ubsan_handle_##NAME##_minimal() {           \
    pagoda::emulator::fail(WHAT);                    \
  }
PAGODA_UNDEFINED(add_overflow, "a signed sum that overflows")
PAGODA_UNDEFINED(sub_overflow, "a signed difference that overflows")
PAGODA_UNDEFINED(mul_overflow, "a signed product that overflows")
PAGODA_UNDEFINED(negate_overflow, "a negation that overflows")
PAGODA_UNDEFINED(divrem_overflow, "a division by zero, or one that overflows")
PAGODA_UNDEFINED(shift_out_of_bounds, "a shift by more bits than there are")
PAGODA_UNDEFINED(out_of_bounds, "an index outside of an array")
PAGODA_UNDEFINED(float_cast_overflow, "a float that no integer of the type is")
PAGODA_UNDEFINED(load_invalid_value, "a bool that is neither true nor false")
