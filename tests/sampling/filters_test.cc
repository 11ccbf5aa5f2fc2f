// Compares the sampler and its ops with numpy (make_fixture.py): which tokens each method keeps,
// how it changes logits, and which tokens are drawn, on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "draw/row_sampler.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"
#include "sampling/device/row_changes.h"
#include "sampling/device/row_draws.h"
#include "sampling/device/row_penalties.h"
#include "sampling/host/dynamic_temperature.h"
#include "sampling/host/typical.h"
#include "sampling/host/xtc.h"
#include "sampling/token_rules.h"
#include "tests/sampling/filter_case.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

template <typename T>
Tensor upload(Exec& exec, const std::vector<T>& values) {
  return exec.upload<T>(values, {static_cast<std::int64_t>(values.size())});
}

SamplerState state_of(const FilterCase& c) {
  SamplerState state(c.params, static_cast<int>(c.tokens.size()) + 1);
  state.sync(c.tokens, c.num_prompt_tokens);
  return state;
}

RowPenalties::History history_of(const FilterCase& c, std::uint64_t sequence) {
  return {.sequence = sequence,
          .tokens = c.tokens,
          .num_prompt_tokens = c.num_prompt_tokens,
          .num_tokens = static_cast<int>(c.tokens.size())};
}

// Returns the cases of each row; an op takes all cases of a row at once.
std::map<std::string, std::vector<FilterCase>> cases_by_row() {
  std::map<std::string, std::vector<FilterCase>> result;
  for (const FilterCase& c : filter_cases()) result[c.row_name].push_back(c);
  return result;
}

// Filters a row on the host, one filter after another. Weights are shares of the likeliest token's.
class HostRow {
 public:
  explicit HostRow(const FilterCase& c)
      : c_(c),
        logits_(c.changed.begin(), c.changed.end()),
        memory_(cpu::RowSampler::num_words(c.logits.size())),
        row_(c.vocab_size(), memory_),
        typical_(c.logits.size()) {
    EXPECT_EQ(row_.scan(logits_), 0);
  }

  float temperature() {
    if (c_.params.dynatemp_range == 0) return c_.params.temperature;
    row_.weigh(1);
    const std::span<const float> weights = row_.weights();
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    return dynamic_temperature(c_.params, logits_, row_.max(), weights, total);
  }

  Candidates keep(float temperature) {
    const SamplingParams& params = c_.params;
    if (params.mirostat == 2) {
      row_.weigh(1 / temperature);
      const std::span<const float> weights = row_.weights();
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      return first(
          row_.keep_heavy(static_cast<float>(total * std::exp2(-2 * params.mirostat_tau))));
    }
    const bool is_typical = params.typical_p < 1;
    std::size_t size =
        row_.keep(1 / temperature, {.top_k = params.top_k,
                                    .top_p = is_typical ? 1 : params.top_p,
                                    .min_p_margin = min_p_margin(params.min_p, temperature)});
    if (is_typical) {
      size = typical_.keep(first(size), temperature, params.typical_p);
      size = row_.keep_top_p(size, params.top_p);
    }
    if (params.xtc_probability == 1) size = exclude_top_choices(first(size), params.xtc_threshold);
    return first(size);
  }

 private:
  Candidates first(std::size_t size) {
    return Candidates{row_.ids(), row_.values(), row_.weights()}.first(size);
  }

  const FilterCase& c_;
  std::vector<float> logits_;
  std::vector<std::int32_t> memory_;
  cpu::RowSampler row_;
  TypicalFilter typical_;
};

TEST(Filters, TheHostKeepsTheSetsAndTheirProbabilities) {
  int num_compared = 0;
  for (const FilterCase& c : filter_cases()) {
    SCOPED_TRACE(c.text);
    if (is_greedy(c.params)) continue;
    HostRow row(c);
    const float temperature = row.temperature();
    ASSERT_NEAR(temperature, c.temperature, 1e-6 * c.temperature);
    const Candidates kept = row.keep(temperature);
    // If no token is above mirostat's threshold, the likeliest one is taken without its weight.
    if (kept.size() == 0) {
      ASSERT_EQ(c.kept.size(), 1u);
      continue;
    }
    ASSERT_EQ(std::vector<int>(kept.ids.begin(), kept.ids.end()), c.kept);
    const bool has_coin = 0 < c.params.xtc_probability && c.params.xtc_probability < 1;
    if (c.probabilities.empty() || has_coin) continue;
    ++num_compared;
    const double total = total_weight(kept);
    const float max = *std::max_element(kept.logits.begin(), kept.logits.end());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      // The logits, their difference and its product with 1 / temperature are rounded to float32.
      // Weights are rounded to 2^-42 of the likeliest token's, which a filter may have dropped.
      const double x = (double{max} - kept.logits[i]) / temperature;
      const double rounding = 0x1p-23 * (4 + x + std::abs(kept.logits[i]));
      EXPECT_NEAR(kept.weights[i] / total, c.probabilities[i],
                  std::min(1.0, rounding) * c.probabilities[i] + 0x1p-42 / total)
          << "token " << kept.ids[i];
    }
  }
  EXPECT_GT(num_compared, 250);
}

TEST(Filters, EveryBackendCutsWhereNumpyDoes) {
  for (const auto& exec : every_exec()) {
    for (const auto& [name, of_row] : cases_by_row()) {
      std::vector<FilterCase> cases;
      std::vector<float> logits, inverse_temperatures, top_ps, min_p_margins;
      std::vector<std::int32_t> top_ks;
      for (const FilterCase& c : of_row) {
        if (!RowDraws::cover(c.params) || is_greedy(c.params)) continue;
        cases.push_back(c);
        logits.insert(logits.end(), c.changed.begin(), c.changed.end());
        inverse_temperatures.push_back(1 / c.params.temperature);
        top_ks.push_back(c.params.top_k);
        top_ps.push_back(c.params.top_p);
        min_p_margins.push_back(min_p_margin(c.params.min_p, c.params.temperature));
      }
      const auto num_rows = static_cast<std::int64_t>(cases.size());
      const std::int64_t vocab_size = cases[0].vocab_size();
      const KeptTokens kept =
          top_k_top_p_min_p(*exec, exec->upload<float>(logits, {num_rows, vocab_size}),
                            upload(*exec, inverse_temperatures),
                            {.top_k = upload(*exec, top_ks),
                             .top_p = upload(*exec, top_ps),
                             .min_p_margin = upload(*exec, min_p_margins)});
      const auto least = compute_values<float>(*exec, kept.least);
      const auto num_ties = compute_values<std::int32_t>(*exec, kept.num_ties);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        std::vector<int> ids;
        int ties_left = num_ties[i];
        for (int id = 0; id < cases[i].vocab_size(); ++id) {
          const float logit = logits[i * vocab_size + id];
          if (logit > least[i] || (logit == least[i] && ties_left-- > 0)) ids.push_back(id);
        }
        EXPECT_EQ(ids, cases[i].kept) << backend_name(exec->backend()) << ", " << cases[i].text;
      }
    }
  }
}

void expect_changed(std::span<const float> logits, const FilterCase& c) {
  for (int id = 0; id < c.vocab_size(); ++id) {
    if (std::isinf(c.changed[id])) {
      EXPECT_EQ(logits[id], c.changed[id]) << c.text << ", token " << id;
    } else {
      const double size = std::abs(c.logits[id]) + std::abs(c.changed[id]);
      EXPECT_NEAR(logits[id], c.changed[id], 0x1p-22 * (1 + size)) << c.text << ", token " << id;
    }
  }
}

TEST(Filters, EveryBackendChangesLogitsAsNumpyDoes) {
  int num_compared = 0;
  for (const auto& exec : every_exec()) {
    for (const FilterCase& c : filter_cases()) {
      if (!RowChanges::cover(c.params) || c.tokens.empty()) continue;
      ++num_compared;
      RowChanges changes(c.vocab_size());
      RowPenalties penalties(c.vocab_size());
      changes.add(c.at(0));
      penalties.add(c.params, history_of(c, 0));
      ASSERT_TRUE(penalties.prepare(*exec).ok());
      const Tensor logits = exec->upload<float>(c.logits, {1, c.vocab_size()});
      const auto changed =
          compute_values<float>(*exec, penalties.apply(*exec, changes.apply(*exec, logits)));
      SCOPED_TRACE(backend_name(exec->backend()));
      expect_changed(changed, c);
    }
  }
  EXPECT_GE(num_compared, 2 * 5 * 12);
}

TEST(Filters, TheHostChangesLogitsAsNumpyDoes) {
  int num_compared = 0;
  for (const FilterCase& c : filter_cases()) {
    const RowSampling row = c.at(0);
    if (c.tokens.empty() || row.bans_stop_tokens) continue;  // the sampler itself bans stop tokens
    ++num_compared;
    SamplerState state = state_of(c);
    std::vector<float> logits = c.logits;
    add_logit_bias(*c.params.token_rules, logits);
    ban_tokens(*c.params.token_rules, row.tokens.subspan(c.num_prompt_tokens), logits);
    penalise_logits(c.params, state.entries(), logits);
    if (state.dry() != nullptr) state.dry()->apply(c.params, state.entries(), logits);
    expect_changed(logits, c);
  }
  EXPECT_EQ(num_compared, 5 * 15 + 2);
}

TEST(Filters, TheSamplerDrawsNumpysTokens) {
  for (const FilterCase& c : filter_cases()) {
    Sampler sampler(c.vocab_size());
    for (std::size_t position = 0; position < c.drawn.size(); ++position) {
      SamplerState state = state_of(c);
      RowSampling row = c.at(static_cast<int>(position));
      row.state = &state;
      const Result<int> token = sampler.sample(row);
      ASSERT_TRUE(token.ok()) << token.status().message();
      EXPECT_EQ(*token, c.drawn[position]) << c.text << ", position " << position;
    }
  }
}

TEST(Filters, EveryBackendDrawsNumpysTokens) {
  for (const auto& exec : every_exec()) {
    for (const auto& [name, cases] : cases_by_row()) {
      RowDraws draws;
      RowChanges changes(cases[0].vocab_size());
      RowPenalties penalties(cases[0].vocab_size());
      std::vector<float> logits;
      std::vector<std::string> texts;
      std::vector<std::int32_t> expected;
      for (const FilterCase& c : cases) {
        if (!RowDraws::cover(c.params) || !RowChanges::cover(c.params)) continue;
        for (std::size_t position = 0; position < c.drawn.size(); ++position) {
          const RowSampling row = c.at(static_cast<int>(position));
          changes.add(row);
          penalties.add(c.params, history_of(c, logits.size()));
          draws.add(c.params, {.seed = c.seed, .position = row.position});
          logits.insert(logits.end(), c.logits.begin(), c.logits.end());
          texts.push_back(c.text);
          expected.push_back(c.drawn[position]);
        }
      }
      const Tensor rows = exec->upload<float>(logits, {draws.num_rows(), cases[0].vocab_size()});
      ASSERT_TRUE(penalties.prepare(*exec).ok());
      const Tensor changed = penalties.apply(*exec, changes.apply(*exec, rows));
      const auto drawn = compute_values<std::int32_t>(*exec, draws.draw(*exec, changed));
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(drawn[i], expected[i]) << backend_name(exec->backend()) << ", " << texts[i];
    }
  }
}

TEST(Filters, MirostatGoesNumpysWay) {
  for (const MirostatRun& run : read_mirostat_runs()) {
    Sampler sampler(static_cast<int>(run.logits.size()));
    SamplerState state(run.params, static_cast<int>(run.steps.size()));
    std::vector<int> tokens;
    for (const auto& [token_id, mu] : run.steps) {
      const int position = static_cast<int>(tokens.size());
      state.sync(tokens, 0);
      const Result<int> token = sampler.sample({.logits = run.logits,
                                                .params = &run.params,
                                                .state = &state,
                                                .seed = run.seed,
                                                .position = position});
      ASSERT_EQ(*token, token_id) << "position " << position;
      // The bound allows for each step's roundings to float32, of numbers below 16.
      ASSERT_NEAR(state.mirostat()->mu(), mu, (position + 1) * 0x1p-20);
      tokens.push_back(token_id);
    }
  }
}

}  // namespace
}  // namespace pagoda
