#include "tests/support/default_model.h"

#include "hub/model_store.h"

namespace pagoda {

std::string default_model_path() {
  const Result<std::filesystem::path> folder = default_model_dir();
  PAGODA_CHECK(folder.ok(), folder.status().message());
  const Result<std::filesystem::path> path = resolve_model(DefaultModel::kName, *folder);
  PAGODA_CHECK(path.ok(), path.status().message());
  return path->string();
}

}  // namespace pagoda
