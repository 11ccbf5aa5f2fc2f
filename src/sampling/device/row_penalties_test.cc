// The counts on the device equal those of the history after tokens are appended or truncated, and
// after counts are forgotten or evicted. They do so too where a window counts only the last tokens.
// Logits penalised by them have the bits of the host, which counts the whole history.
#include "sampling/device/row_penalties.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backend/backend.h"
#include "sampling/host/sampler_state.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

constexpr unsigned kSeed = 20261124;
constexpr int kVocabSize = 97;

struct Sequence {
  std::uint64_t id = 0;
  SamplingParams params;
  std::vector<int> tokens;
  int num_prompt_tokens = 0;

  // Returns the history; if `is_awaited`, without the last token.
  RowPenalties::History history(bool is_awaited = false) const {
    return {.sequence = id,
            .tokens = std::span(tokens).first(tokens.size() - (is_awaited ? 1 : 0)),
            .num_prompt_tokens = num_prompt_tokens,
            .num_tokens = static_cast<int>(tokens.size())};
  }
};

class Sequences {
 public:
  explicit Sequences(unsigned seed) : random_(seed) {}

  int below(int end) { return static_cast<int>(random_() % end); }

  Sequence fresh() {
    Sequence sequence{.id = next_id_++, .num_prompt_tokens = 1 + below(12)};
    for (int i = sequence.num_prompt_tokens + below(4); i > 0; --i)
      sequence.tokens.push_back(below(kVocabSize / 3));
    if (below(4) > 0) sequence.params.repetition_penalty = 0.5f + 0.25f * below(5);
    if (below(3) == 0) sequence.params.frequency_penalty = -0.7f;
    if (below(3) == 0) sequence.params.presence_penalty = 0.9f;
    if (below(2) == 0) sequence.params.repeat_last_n = below(16) - 1;
    return sequence;
  }

  std::vector<float> logits() {
    std::normal_distribution<float> normal(0, 2);
    std::vector<float> row(kVocabSize);
    for (float& logit : row) logit = normal(random_);
    return row;
  }

 private:
  std::mt19937 random_;
  std::uint64_t next_id_ = 0;
};

std::vector<float> penalised_by_host(const Sequence& sequence, std::vector<float> logits) {
  if (!penalises(sequence.params)) return logits;
  SamplerState state(sequence.params, static_cast<int>(sequence.tokens.size()));
  state.sync(sequence.tokens, sequence.num_prompt_tokens);
  penalise_logits(sequence.params, state.entries(), logits);
  return logits;
}

// Runs one step of these sequences: penalises their logits, then gives each sequence a token or an
// error.
void step(Exec& exec, RowPenalties& penalties, Sequences& random,
          const std::vector<Sequence*>& rows) {
  int num_penalised = 0;
  for (const Sequence* row : rows) num_penalised += penalises(row->params) ? 1 : 0;
  const bool has_room = penalties.has_room(num_penalised);
  penalties.clear();
  std::vector<float> logits, expected;
  std::vector<std::int32_t> drawn;
  for (const Sequence* row : rows) {
    const bool is_counted =
        has_room && penalties.has_counted(row->id, static_cast<int>(row->tokens.size()));
    // If the counts include the last token, the history need not have it.
    penalties.add(row->params, row->history(/*is_awaited=*/is_counted && random.below(2) == 0));
    const std::vector<float> raw = random.logits();
    logits.insert(logits.end(), raw.begin(), raw.end());
    const std::vector<float> changed = penalised_by_host(*row, raw);
    expected.insert(expected.end(), changed.begin(), changed.end());
    drawn.push_back(random.below(9) == 0 ? -1 : random.below(kVocabSize));
  }
  const auto n = static_cast<std::int64_t>(rows.size());
  ASSERT_TRUE(penalties.prepare(exec).ok());
  const Tensor penalised = penalties.apply(exec, exec.upload<float>(logits, {n, kVocabSize}));
  EXPECT_EQ(compute_values<float>(exec, penalised), expected);
  penalties.count(exec, exec.upload<std::int32_t>(drawn, {n}));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (drawn[i] >= 0) {
      rows[i]->tokens.push_back(drawn[i]);
    } else {
      *rows[i] = random.fresh();  // an error has ended the sequence
    }
  }
}

TEST(RowPenalties, CountsAreTheHistorysWhateverHappens) {
  std::printf("seed %u\n", kSeed);
  for (const auto& exec : every_exec(/*num_threads=*/1)) {
    SCOPED_TRACE(backend_name(exec->backend()));
    Sequences random(kSeed);
    RowPenalties penalties(kVocabSize);
    std::vector<Sequence> sequences;
    for (int i = 0; i < 24; ++i) sequences.push_back(random.fresh());
    int num_counted = 0, num_filled = 0;
    for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
      std::vector<Sequence*> rows;
      for (Sequence& sequence : sequences) {
        if (random.below(24) > std::min(i / 4, 16)) continue;  // few rows at first, more later
        if (random.below(20) == 0) {
          sequence.tokens.resize(sequence.num_prompt_tokens);  // truncated
          sequence.id += 1000;
        }
        rows.push_back(&sequence);
        const bool is_counted =
            penalties.has_counted(sequence.id, static_cast<int>(sequence.tokens.size()));
        ++(is_counted ? num_counted : num_filled);
      }
      if (random.below(40) == 0) penalties.forget();
      if (!rows.empty()) step(*exec, penalties, random, rows);
    }
    EXPECT_GT(num_counted, 500);
    EXPECT_GT(num_filled, 200);
  }
}

TEST(RowPenalties, AFullTableKeepsWhatTheStepNeeds) {
  for (const auto& exec : every_exec(/*num_threads=*/1)) {
    SCOPED_TRACE(backend_name(exec->backend()));
    Sequences random(kSeed);
    RowPenalties penalties(kVocabSize);
    std::vector<Sequence> sequences;
    for (int i = 0; i < 5; ++i) {
      sequences.push_back(random.fresh());
      sequences.back().params.repetition_penalty = 2;
    }
    const auto four_but = [&](int left_out) {
      std::vector<Sequence*> rows;
      for (int i = 0; i < 5; ++i) {
        if (i != left_out) rows.push_back(&sequences[i]);
      }
      return rows;
    };
    // The returning sequence must take the histogram of the one left out, not that of a later row.
    for (int left_out = 0; left_out < 5; ++left_out)
      step(*exec, penalties, random, four_but(left_out));
    EXPECT_TRUE(penalties.has_room(4));
    EXPECT_FALSE(penalties.has_room(5));
    EXPECT_EQ(penalties.counts().extent(0), 4);
  }
}

TEST(RowPenalties, NobodyPenalisedCostsNothing) {
  const auto exec = make_exec({.backend = Backend::kReference, .num_threads = 1}).value();
  RowPenalties penalties(4);
  const SamplingParams params = {.temperature = 0.5f};
  penalties.add(params, {});
  ASSERT_TRUE(penalties.prepare(*exec).ok());
  const Tensor logits = exec->upload<float>(std::vector<float>{1, 2, 3, 4}, {1, 4});
  EXPECT_EQ(penalties.apply(*exec, logits).buffer().get(), logits.buffer().get());
  penalties.count(*exec, exec->upload<std::int32_t>(std::vector<std::int32_t>{2}, {1}));
  EXPECT_FALSE(penalties.counts().defined());
}

TEST(RowPenalties, MoreCountsThanAnIndexHoldsAreAnError) {
  const auto exec = make_exec({.backend = Backend::kReference, .num_threads = 1}).value();
  RowPenalties penalties(1 << 30);
  const SamplingParams params = {.repetition_penalty = 2};
  penalties.add(params, {});
  EXPECT_EQ(penalties.prepare(*exec).code(), StatusCode::kResourceExhausted);
  const Tensor logits = exec->upload<float>(std::vector<float>{1, 2, 3, 4}, {1, 4});
  EXPECT_EQ(penalties.apply(*exec, logits).buffer().get(), logits.buffer().get());
}

}  // namespace
}  // namespace pagoda
