// Batch invariance: an answer never depends on what is computed beside it. Token ids,
// log-probabilities and logits of each request have the bits of the request alone. This holds for
// any arrivals, chunks, blocks and threads, after preemption, with prefix cache hits and with
// samples that share blocks. Blocks that no request holds are NaN, so that any read of them shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "backend/backend.h"
#include "kv/cache_groups.h"
#include "model/model_config.h"
#include "tests/support/default_model.h"
#include "tests/support/mixed_requests.h"
#include "tests/support/open_engine.h"
#include "tests/support/source_path.h"
#include "tests/support/stepped_engine.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/windowed_checkpoint.h"
#include "weights/checkpoint.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261120;

constexpr KvFormats kQuantizedKv[] = {{KvFormat::kInt8, KvFormat::kInt8},
                                      {KvFormat::kInt8, KvFormat::kInt4},
                                      {KvFormat::kInt4, KvFormat::kInt4}};

// Returns a name such as "int8_int4".
std::string name_of(const KvFormats& formats) {
  return fmt::format("{}_{}", kv_format_name(formats.keys), kv_format_name(formats.values));
}

std::string bits_of(const TokenLogprobs& logprobs) {
  std::string text =
      fmt::format("{} {:08x} rank {}", logprobs.chosen.token_id,
                  std::bit_cast<std::uint32_t>(logprobs.chosen.logprob), logprobs.rank);
  for (const TokenLogprob& top : logprobs.top)
    text += fmt::format(", {} {:08x}", top.token_id, std::bit_cast<std::uint32_t>(top.logprob));
  return text;
}

void expect_same(const WholeAnswer& answer, const WholeAnswer& alone, const std::string& what) {
  ASSERT_TRUE(answer.error.ok()) << what << ": " << answer.error.message();
  ASSERT_EQ(answer.token_ids, alone.token_ids) << what;
  EXPECT_EQ(answer.finish_reason, alone.finish_reason) << what;
  EXPECT_EQ(answer.logits_hash, alone.logits_hash) << what;
  ASSERT_EQ(answer.logprobs.size(), alone.logprobs.size()) << what;
  for (std::size_t i = 0; i < answer.logprobs.size(); ++i)
    EXPECT_EQ(bits_of(answer.logprobs[i]), bits_of(alone.logprobs[i])) << what << " token " << i;
  EXPECT_EQ(answer.embedding, alone.embedding) << what;
  ASSERT_EQ(answer.prompt_logprobs.size(), alone.prompt_logprobs.size()) << what;
  for (std::size_t i = 1; i < answer.prompt_logprobs.size(); ++i) {
    EXPECT_EQ(bits_of(*answer.prompt_logprobs[i]), bits_of(*alone.prompt_logprobs[i]))
        << what << " prompt token " << i;
  }
}

struct Way {
  std::string name;
  SteppedEngineOptions options;
  double arrivals_per_step = 0;  // 0: all at once
  bool is_timed = false;         // the scheduler is told durations, and plans chunks by them
  int num_rounds = 1;            // with the same engine
};

class Answers {
 public:
  // options: shared by all ways.
  Answers(std::string path, const SteppedEngineOptions& options, const Traffic& traffic)
      : path_(std::move(path)), traffic_(traffic), options_(options) {
    std::cout << "seed " << kSeed << "\n";
    const ModelConfig config = read_model_config(Checkpoint::open(path_).value()).value();
    heads_differ_ = std::ranges::any_of(config.layers, [&](const LayerConfig& layer) {
      return layer.attention().head_dim != config.layers.front().attention().head_dim;
    });
    options_.max_model_len = traffic.longest_prompt + traffic.max_tokens + 1;
    windows_ = SteppedEngine(path_, options_).kv_cache().group_windows;
    options_.num_blocks = num_blocks_of_all(options_.block_size);
    SteppedEngine engine(path_, options_);
    requests_ = mixed_requests(traffic, engine.vocab_size(), kSeed);
    for (const GenerationRequest& request : requests_) {
      engine.add(request);
      while (!engine.idle()) engine.step();
    }
    alone_ = engine.answers();
  }

  // Returns the blocks that 16 contexts of full length need without windows.
  int num_blocks_of_all(int block_size) const {
    const CacheGroups groups(block_size, windows_);
    return 16 * groups.size() * groups.blocks_for(options_.max_model_len);
  }
  // Returns the most blocks that one context of full length holds.
  int num_blocks_of_one(int block_size) const {
    return CacheGroups(block_size, windows_).most_held(options_.max_model_len);
  }
  int num_groups() const { return static_cast<int>(windows_.size()); }
  bool has_windows() const { return windows_.back() > 0; }
  const SteppedEngineOptions& options() const { return options_; }

  // Runs all requests in this way and compares the answers. Returns the counters.
  SchedulerCounters run(const Way& way) const {
    SteppedEngine engine(path_, way.options);
    for (int round = 0; round < way.num_rounds; ++round) {
      const std::size_t first = engine.answers().size();
      run_round(engine, way);
      for (std::size_t i = 0; i < alone_.size(); ++i) {
        expect_same(engine.answers()[first + i], alone_[i],
                    fmt::format("{}, round {}, answer {}", way.name, round, i));
        if (::testing::Test::HasFatalFailure()) break;
      }
    }
    EXPECT_EQ(engine.scheduler().num_free_blocks(), way.options.num_blocks) << way.name;
    const SchedulerCounters& counters = engine.scheduler().counters();
    const RunnerStats steps = engine.stats().runner;
    std::cout << fmt::format(
        "{}: {} preemptions, {} of {} prompt tokens cached, {} copies, {} of {} steps straight\n",
        way.name, counters.num_preemptions, counters.num_prefix_hits, counters.num_prefix_queries,
        counters.num_block_copies, steps.num_contiguous_steps,
        steps.num_contiguous_steps + steps.num_paged_steps);
    const bool is_one_block = way.options.block_size >= way.options.max_model_len;
    // With quantised layers beside bfloat16 windows, or heads of two sizes, other layers' entries
    // lie between one block and the next.
    const bool has_parts = num_groups() > 1 && (options_.kv_cache_formats || heads_differ_);
    if (way.options.block_order == BlockOrder::kConsecutive && !has_parts) {
      EXPECT_GT(steps.num_contiguous_steps, 0u) << way.name;
    }
    if (way.options.block_order == BlockOrder::kLowest) {
      EXPECT_GT(steps.num_paged_steps, steps.num_contiguous_steps) << way.name;
    }
    if (is_one_block) {
      EXPECT_EQ(steps.num_paged_steps, 0u) << way.name;
    }
    return counters;
  }

 private:
  void run_round(SteppedEngine& engine, const Way& way) const {
    std::mt19937_64 random(kSeed + 1);
    std::poisson_distribution<int> arrivals(way.arrivals_per_step);
    std::size_t next = 0;
    while (next < requests_.size() || !engine.idle()) {
      int count = way.arrivals_per_step > 0 ? arrivals(random) : static_cast<int>(requests_.size());
      if (engine.idle()) count = std::max(count, 1);
      for (; count > 0 && next < requests_.size(); --count) engine.add(requests_[next++]);
      engine.step(way.is_timed ? seconds_of_next(random) : 0);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  // Returns an arbitrary duration: it only changes how prompts are chunked.
  static double seconds_of_next(std::mt19937_64& random) {
    return 0.001 + static_cast<double>(random() % 1000) * 1e-5;
  }

  std::string path_;
  Traffic traffic_;
  SteppedEngineOptions options_;
  bool heads_differ_ = false;  // between layers
  std::vector<int> windows_;   // of the model's cache groups
  std::vector<GenerationRequest> requests_;
  std::vector<WholeAnswer> alone_;
};

struct Layout {
  int block_size = 0;
  BlockOrder order = BlockOrder::kConsecutive;
  int num_threads = 1;
};

// Returns whether steps run on a GPU that may be an emulated one, on which each kernel takes long.
bool may_be_emulated(Backend backend) {
  return backend == Backend::kMlx && backend_has_gpu(backend);
}

// Returns layouts to test: auto, paged and contiguous. Other runs have consecutive blocks of 16.
std::vector<Layout> layouts_of(Backend backend, int longest) {
  std::vector<Layout> layouts = {
      {.block_size = 8}, {.block_size = 32, .order = BlockOrder::kLowest}, {.block_size = longest}};
  if (backend == Backend::kReference || may_be_emulated(backend)) return layouts;  // slow
  const int all_threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  layouts.push_back({.block_size = 8, .order = BlockOrder::kLowest, .num_threads = all_threads});
  layouts.push_back({.block_size = 16, .order = BlockOrder::kLowest});
  layouts.push_back({.block_size = 32, .num_threads = 3});
  return layouts;
}

void check_batch_invariance(const std::string& path, const SteppedEngineOptions& shared,
                            const Traffic& traffic) {
  const Answers alone(path, shared, traffic);
  const auto with = [&](auto&& change) {
    SteppedEngineOptions options = alone.options();
    change(options);
    return options;
  };
  const int longest = alone.options().max_model_len;
  for (const int chunk : {2048, 64, 16}) {
    alone.run({.name = fmt::format("all at once, {} tokens a step", chunk),
               .options = with([&](auto& o) { o.max_num_batched_tokens = chunk; })});
  }
  alone.run({.name = "staggered, chunks by cost, two threads",
             .options = with([](auto& o) { o.num_threads = 2; }),
             .arrivals_per_step = 0.5,
             .is_timed = true});
  for (const Layout& layout : layouts_of(shared.backend, longest)) {
    const auto options = with([&](auto& o) {
      o.num_threads = layout.num_threads;
      o.block_size = layout.block_size;
      o.block_order = layout.order;
      o.num_blocks = alone.num_blocks_of_all(layout.block_size);
      o.has_prefix_cache = true;
    });
    alone.run({.name = fmt::format("blocks of {}{}, {} threads, cached", layout.block_size,
                                   layout.order == BlockOrder::kLowest ? " anywhere" : "",
                                   layout.num_threads),
               .options = options,
               .arrivals_per_step = 0.7});
  }
  const auto cached = alone.run({.name = "prefix cache cold, then warm",
                                 .options = with([](auto& o) { o.has_prefix_cache = true; }),
                                 .arrivals_per_step = 0.7,
                                 .num_rounds = 2});
  // Much traffic does not fit in the pool, so fewer prefixes are found.
  EXPECT_GT(cached.num_prefix_hits,
            cached.num_prefix_queries / (traffic.num_requests > 100 ? 20 : 4));
  EXPECT_GT(cached.num_block_copies, 10u);
  for (const bool has_cache : {false, true}) {
    const auto options = with([&](auto& o) {
      o.has_prefix_cache = has_cache;
      o.block_size = 2;  // many per sequence, so that they run out
      o.num_blocks = alone.num_blocks_of_one(2) + 10 * alone.num_groups();
      o.max_num_batched_tokens = 64;
    });
    const auto tiny = alone.run({.name = fmt::format("tiny pool, cache {}", has_cache),
                                 .options = options,
                                 .num_rounds = traffic.num_requests > 100 ? 8 : 4});
    // With windows a sequence stops growing, so preemptions are fewer.
    const unsigned least = traffic.num_requests < 40 ? 20 : 50;
    EXPECT_GE(tiny.num_preemptions, alone.has_windows() ? 5 : least);
  }
}

// Returns `usual`, or 200 long requests if PAGODA_MUCH_TRAFFIC is set: half an hour per model.
Traffic traffic_or(const Traffic& usual) {
  if (std::getenv("PAGODA_MUCH_TRAFFIC") == nullptr) return usual;
  return {.num_requests = 200, .longest_prompt = 1500, .max_tokens = 60};
}

class BatchInvarianceOfTinyModels
    : public ::testing::TestWithParam<std::tuple<Backend, std::string>> {};

TEST_P(BatchInvarianceOfTinyModels, ChangesNoBit) {
  const auto& [backend, model] = GetParam();
  const Traffic usual =
      may_be_emulated(backend) ? Traffic{.num_requests = 24, .max_tokens = 40} : Traffic{};
  check_batch_invariance(testing::source_path("tests/golden/data/") + model, {.backend = backend},
                         traffic_or(usual));
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, BatchInvarianceOfTinyModels,
    ::testing::Combine(::testing::ValuesIn(backends_here()),
                       ::testing::Values("tiny-llama", "tiny-mistral", "tiny-gemma2", "tiny-gemma4",
                                         "tiny-phi3", "tiny-qwen3-moe", "tiny-glm4-moe",
                                         "tiny-gemma4-moe")),
    [](const auto& info) {
      std::string model = std::get<1>(info.param).substr(std::string_view("tiny-").size());
      std::replace(model.begin(), model.end(), '-', '_');
      return fmt::format("{}_{}", backend_name(std::get<0>(info.param)), model);
    });

class BatchInvarianceOfWindows
    : public ::testing::TestWithParam<std::tuple<Backend, std::optional<KvFormats>>> {};

TEST_P(BatchInvarianceOfWindows, ChangesNoBit) {
  const auto& [backend, formats] = GetParam();
  const testing::TemporaryFolder folder;
  testing::make_windowed_checkpoint(folder);
  const Traffic usual = {.num_requests = 30, .max_tokens = 40};
  check_batch_invariance(folder.path(), {.backend = backend, .kv_cache_formats = formats},
                         traffic_or(usual));
}

INSTANTIATE_TEST_SUITE_P(Tiny, BatchInvarianceOfWindows,
                         ::testing::Combine(::testing::ValuesIn(backends_here()),
                                            ::testing::Values(std::optional<KvFormats>(),
                                                              kQuantizedKv[0], kQuantizedKv[1],
                                                              kQuantizedKv[2])),
                         [](const auto& info) {
                           const std::optional<KvFormats>& formats = std::get<1>(info.param);
                           return fmt::format("{}_{}", backend_name(std::get<0>(info.param)),
                                              formats ? name_of(*formats) : "auto");
                         });

class BatchInvarianceOfCodes : public ::testing::TestWithParam<std::tuple<Backend, KvFormats>> {};

TEST_P(BatchInvarianceOfCodes, ChangesNoBit) {
  const auto& [backend, formats] = GetParam();
  const Traffic usual = {.num_requests = may_be_emulated(backend) ? 12 : 24, .max_tokens = 40};
  check_batch_invariance(kTinyLlama, {.backend = backend, .kv_cache_formats = formats},
                         traffic_or(usual));
}

INSTANTIATE_TEST_SUITE_P(Tiny, BatchInvarianceOfCodes,
                         ::testing::Combine(::testing::ValuesIn(backends_here()),
                                            ::testing::ValuesIn(kQuantizedKv)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", backend_name(std::get<0>(info.param)),
                                              name_of(std::get<1>(info.param)));
                         });

TEST(BatchInvarianceOfARealModel, ChangesNoBitOnCpu) {
  check_batch_invariance(default_model_path(), {.backend = Backend::kCpu},
                         traffic_or({.num_requests = 20, .longest_prompt = 90, .max_tokens = 40}));
}

}  // namespace
}  // namespace pagoda
