#include "model/family.h"

namespace pagoda {

const Family* find_family(std::string_view model_type) {
  for (const Family* family : {&kLlama, &kMistral, &kQwen2, &kQwen3}) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

}  // namespace pagoda
