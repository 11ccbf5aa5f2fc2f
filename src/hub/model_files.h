// Chooses what `pagoda pull` fetches from a repository: the files that an engine reads, and of
// several quantisations one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "hub/hub_revision.h"

namespace pagoda {

// A model in GGUF: one file, or the parts of a split set, in order.
struct HubModel {
  std::string quantization;  // in upper case, as hubs name it: "Q4_K_M", "UD-Q4_K_XL"; "" if the
                             // names of the file and its folder have none
  std::vector<HubFile> files;
  std::int64_t num_bytes = 0;
  bool is_read = true;  // false: by its name it has weights in a format that nothing here reads
};

// Returns the GGUF models of a repository, in all folders, the best first. Those that nothing here
// reads are last. Before them come weights of 16 and 32 bits, which take twice the memory of Q8_0
// for no better answers. Before them too come dynamic quantisations ("UD-"), whose names do not
// tell all formats in them. Projectors of images and importance matrices are left out.
std::vector<HubModel> gguf_models(const std::vector<HubFile>& files);

// Returns whether a model fits into that much memory beside a context of 8,192 tokens. The
// context's size is not known before the model is fetched: 1 GB and a tenth of the weights stand
// for it and for all other memory.
bool fits_memory(std::int64_t model_bytes, std::int64_t memory_bytes);

struct ModelFiles {
  std::vector<HubFile> files;
  std::string quantization;    // of the GGUF model; "" for safetensors
  std::int64_t num_bytes = 0;  // the largest number if the sizes sum to more
};

// Returns the files to fetch: config, generation config, tokenizer and chat template at the top of
// the repository, and weights. Without a `quantization` (in upper case) the weights are the
// safetensors at the top, but for the second copy that some repositories have
// (consolidated*.safetensors); if there are none, the best GGUF model that fits into
// `memory_bytes`. Errors:
// - kUnsupported: no such weights, none that anything here reads, or more than 1024 files;
// - kNotFound: no GGUF model of that quantisation; the message lists those that there are;
// - kInvalidArgument: several GGUF models of that quantisation;
// - kResourceExhausted: every GGUF model is too large; the message names the smallest.
Result<ModelFiles> choose_model_files(const std::vector<HubFile>& files,
                                      std::string_view quantization, std::int64_t memory_bytes);

}  // namespace pagoda
