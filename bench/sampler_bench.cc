// pagoda_sampler_bench: what one row costs the host's Sampler, on one core: by vocabulary and
// filter, and what looking at the past adds by the length of the history. Medians, microseconds.
//
//   pagoda_sampler_bench [--draws 201]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/status.h"
#include "sampling/host/sampler.h"

namespace pagoda {
namespace {

constexpr int kVocabSizes[] = {49152, 151936, 262144};
constexpr int kHistories[] = {400, 4000, 16000};
// Standard deviations of a row's logits, which are normal.
constexpr float kPeaked = 4, kFlat = 0.01f;

struct Case {
  const char* name;
  SamplingParams params;
  float deviation = kPeaked;
};

// Prints a line for each case, with its times of each column.
template <typename Time>
void print_table(const char* title, std::span<const int> columns, std::span<const Case> cases,
                 const Time& time_us) {
  fmt::print("{:<32}", title);
  for (const int column : columns) fmt::print("{:>10}", column);
  fmt::print("\n");
  for (const Case& c : cases) {
    fmt::print("{:<32}", c.name);
    for (const int column : columns) fmt::print("{:>10.1f}", time_us(c, column));
    fmt::print("\n");
  }
}

std::vector<float> normal_row(int vocab_size, float deviation) {
  std::mt19937 random(20261121);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  for (float& logit : row) logit = normal(random);
  return row;
}

template <typename Work>
double median_us(int count, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work(i);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + count / 2, times.end());
  return times[static_cast<std::size_t>(count / 2)];
}

void draw(Sampler& sampler, const RowSampling& row) {
  const Result<int> token = sampler.sample(row);
  PAGODA_CHECK(token.ok(), token.status().message());
}

void time_filters(int num_draws) {
  const Case cases[] = {
      {"greedy", {.temperature = 0}},
      {"temperature 1", {}},
      {"top-k 50, top-p 0.9", {.top_k = 50, .top_p = 0.9f}},
      {"top-p 0.9, a peaked row", {.top_p = 0.9f}},
      {"top-p 0.9, a flat row", {.top_p = 0.9f}, kFlat},
      {"typical-p 0.9", {.typical_p = 0.9f}},
      {"XTC", {.xtc_probability = 1}},
      {"mirostat", {.mirostat = 2}},
      {"dynamic temperature", {.dynatemp_range = 0.5f}},
  };
  print_table("us a row, vocabulary of", kVocabSizes, cases, [&](const Case& c, int vocab_size) {
    Sampler sampler(vocab_size);
    const std::vector<float> logits = normal_row(vocab_size, c.deviation);
    std::optional<SamplerState> state;
    if (SamplerState::is_needed(c.params)) state.emplace(c.params, 1);
    return median_us(num_draws, [&](int position) {
      draw(sampler, {.logits = logits,
                     .params = &c.params,
                     .state = state ? &*state : nullptr,
                     .seed = 1,
                     .position = position});
    });
  });
}

// Times greedy rows, each after one token more.
void time_histories(int num_draws) {
  const SamplingParams penalties = {.temperature = 0,
                                    .repetition_penalty = 1.1f,
                                    .presence_penalty = 0.5f,
                                    .frequency_penalty = 0.5f};
  const SamplingParams dry = {.temperature = 0, .dry_multiplier = 0.8f};
  SamplingParams both = penalties;
  both.dry_multiplier = dry.dry_multiplier;
  const Case cases[] = {{"none", {.temperature = 0}},
                        {"three penalties", penalties},
                        {"DRY", dry},
                        {"penalties and DRY", both}};
  const int vocab_size = kVocabSizes[0];
  const std::vector<float> logits = normal_row(vocab_size, kPeaked);
  fmt::print("\n");
  print_table("us a token, distinct history of", kHistories, cases,
              [&](const Case& c, int history) {
                std::vector<int> tokens(static_cast<std::size_t>(history + num_draws));
                std::iota(tokens.begin(), tokens.end(), 0);
                std::shuffle(tokens.begin(), tokens.end(), std::mt19937(1));
                Sampler sampler(vocab_size);
                std::optional<SamplerState> state;
                if (SamplerState::is_needed(c.params)) {
                  state.emplace(c.params, history + num_draws);
                  state->sync(std::span(tokens).first(history), history / 2);
                }
                return median_us(num_draws, [&](int i) {
                  const auto past = std::span<const int>(tokens).first(history + i);
                  if (state) state->sync(past, history / 2);
                  draw(sampler, {.logits = logits,
                                 .params = &c.params,
                                 .state = state ? &*state : nullptr,
                                 .tokens = past,
                                 .num_prompt_tokens = history / 2,
                                 .seed = 1,
                                 .position = history + i});
                });
              });
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  int num_draws = 201;
  CLI::App app("What one row costs the sampler, by vocabulary, filter and history");
  app.add_option("--draws", num_draws, "Of which the median is taken")->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  pagoda::time_filters(num_draws);
  pagoda::time_histories(num_draws);
  return 0;
}
