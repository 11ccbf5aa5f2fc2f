#include "backend/backend.h"
#include "backend/native_exec.h"

namespace pagoda::reference {
namespace {

class ReferenceExec final : public NativeExec {
 public:
  static Result<std::unique_ptr<Exec>> create() {
    PAGODA_ASSIGN_OR_RETURN(Arenas arenas, make_arenas(/*huge_pages=*/false));
    return std::unique_ptr<Exec>(new ReferenceExec(std::move(arenas)));
  }

 private:
  explicit ReferenceExec(Arenas arenas) : NativeExec(Backend::kReference, std::move(arenas)) {}
};

}  // namespace

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions&) {
  return ReferenceExec::create();
}

}  // namespace pagoda::reference
