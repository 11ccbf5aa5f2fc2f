#include "server/chat/single_answer.h"

namespace pagoda {

std::optional<ApiError> SingleAnswer::take(
    const std::function<void(const AnswerPart&, const TextPiece&)>& on_part,
    const std::function<void(const TextPiece&)>& on_piece) {
  for (const ChoicePiece& choice_piece : group_->take()) {
    const TextPiece& piece = choice_piece.piece;
    if (auto error = failure_of(piece)) return error;
    on_piece(piece);
    const std::vector<AnswerPart> parts = reader_.parts_of(piece);
    for (const AnswerPart& part : parts) on_part(part, piece);
    if (piece.finish_reason != FinishReason::kNone) last_ = piece;
  }
  return {};
}

}  // namespace pagoda
