#include "convert/hf_sentence_piece.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "convert/gguf_token_types.h"
#include "core/json.h"
#include "core/utf8.h"

namespace pagoda {
namespace {

using nlohmann::json;

bool is_byte_token(std::string_view token) {
  const auto is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
         is_digit(token[3]) && is_digit(token[4]);
}

// The pieces that a reader of scores may merge.
class Pieces {
 public:
  explicit Pieces(const GgufVocabulary& vocabulary) : vocabulary_(vocabulary) {
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
      ids_.emplace(vocabulary.tokens[id], id);
  }

  // Returns the id of a piece that merges may join or produce; -1: there is none.
  std::ptrdiff_t find(std::string_view text) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) return -1;
    const int type = vocabulary_.token_types[found->second];
    return type == kNormalToken || type == kUnusedToken ? static_cast<std::ptrdiff_t>(found->second)
                                                        : -1;
  }

  // Returns the number of ways to join two pieces to this one.
  int num_splits(std::string_view piece) const {
    int count = 0;
    for (std::size_t middle = 1; middle < piece.size(); ++middle) {
      if (!starts_character(piece[middle])) continue;
      count += find(piece.substr(0, middle)) >= 0 && find(piece.substr(middle)) >= 0;
    }
    return count;
  }

 private:
  const GgufVocabulary& vocabulary_;
  std::unordered_map<std::string_view, std::size_t> ids_;
};

Status not_all_merges(std::string_view piece) {
  return unsupported(
      "[quantize] tokenizer.json: no GGUF vocabulary cuts text as this tokenizer does: its merges "
      "are not all that its pieces allow, best piece first (as of '{}')",
      piece);
}

}  // namespace

void mark_pieces(const json& model, GgufVocabulary& vocabulary) {
  std::vector<int>& types = vocabulary.token_types;
  for (std::size_t id = 0; id < types.size(); ++id) {
    if (types[id] == kNormalToken && is_byte_token(vocabulary.tokens[id])) types[id] = kByteToken;
  }
  if (const json unknown = model.value("unk_token", json()); unknown.is_string()) {
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(),
                                 unknown.get_ref<const std::string&>());
    if (found != vocabulary.tokens.end()) {
      vocabulary.unknown_token_id = static_cast<int>(found - vocabulary.tokens.begin());
      types[*vocabulary.unknown_token_id] = kUnknownToken;
    }
  }
}

Status set_scores(GgufVocabulary& vocabulary) {
  const std::vector<int>& types = vocabulary.token_types;
  const Pieces pieces(vocabulary);
  std::vector<int> num_merges(types.size());
  std::vector<float> scores(types.size());
  int num_ranked = 0;
  std::ptrdiff_t last = -1;
  for (const std::string& merge : std::exchange(vocabulary.merges, {})) {
    const std::size_t space = merge.find(' ');
    const std::string piece = merge.substr(0, space) + merge.substr(space + 1);
    const std::ptrdiff_t id = pieces.find(piece);
    if (id < 0) continue;  // a special token, which merging never produces
    if (id != last && num_merges[id] > 0) return not_all_merges(piece);
    if (id != last) scores[id] = static_cast<float>(-++num_ranked);
    ++num_merges[id];
    last = id;
  }
  for (std::size_t id = 0; id < types.size(); ++id) {
    const bool is_piece = types[id] == kNormalToken || types[id] == kUnusedToken;
    if (is_piece && num_merges[id] != pieces.num_splits(vocabulary.tokens[id]))
      return not_all_merges(vocabulary.tokens[id]);
    if (is_piece && num_merges[id] == 0) scores[id] = static_cast<float>(-num_ranked - 1);
  }
  vocabulary.scores = std::move(scores);
  return ok_status();
}

std::vector<GgufVocabulary> space_prefix_candidates(const GgufVocabulary& vocabulary) {
  std::vector<GgufVocabulary> candidates(6, vocabulary);
  for (GgufVocabulary& candidate : candidates) {
    candidate.pre = "default";
    candidate.add_space_prefix = true;
  }
  candidates[1].add_space_prefix = false;
  candidates[2].metaspace = "first";
  candidates[3].metaspace = "always";
  // Readers recognise by this name that special tokens absorb the white space after them.
  for (const int i : {4, 5}) candidates[i].model_name = "Phi-3";
  candidates[5].add_space_prefix = false;
  return candidates;
}

}  // namespace pagoda
