// pagoda_decode_bench: a checkpoint's decode step beside a bare loop over the same bytes.
//
// A step cannot read its weights and its keys and values faster than a loop that does nothing but
// read as many. That loop does not always reach the limit of `bench machine`, which no fork and
// join interrupts. So these take turns of milliseconds in one process:
// - the limit;
// - as many bytes in one piece;
// - as many in the step's own jobs, one for each product and each layer's attention, forked and
//   joined as the step's are;
// - the step itself.
//
//   pagoda_decode_bench MODEL [--threads 2] [--context 160] [--seconds 15] [--split 63]
//
// --split GB/s tells a machine's two states apart, where it has two: turns whose bare loop is
// slower, and turns whose bare loop is faster.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>

#include "backend/cpu/cpu_exec.h"
#include "cli/bench/machine_limits.h"
#include "core/machine.h"
#include "engine/kv_sizing.h"
#include "model/decoder.h"
#include "tensor/op_profile.h"

namespace pagoda {
namespace {

constexpr int kTokensPerChunk = 512;
constexpr std::size_t kPage = 4096;          // jobs are cut at pages
constexpr std::size_t kFetchedAhead = 8192;  // that the bare loop asks for past its end
constexpr double kSteadyRatio = 1.12;  // of the bare loops around a measurement; else it is dropped

struct Options {
  std::string model;
  int threads = 0;
  int context = 160;
  double seconds = 15;
  double split_gb_per_s = 0;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double gb_per_s(double bytes, const std::function<void()>& work) {
  const double start = now_s();
  work();
  return bytes / (now_s() - start) / 1e9;
}

// As many bytes as a step reads, in memory of their own.
class BareLoop {
 public:
  BareLoop(cpu::ThreadPool& pool, const std::vector<double>& jobs) : pool_(pool) {
    for (const double bytes : jobs) {
      jobs_.push_back({num_bytes_, static_cast<std::size_t>(bytes) / kPage * kPage});
      num_bytes_ += jobs_.back().num_bytes;
    }
    memory_ =
        static_cast<std::byte*>(mmap(nullptr, num_bytes_ + kFetchedAhead, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    PAGODA_CHECK(memory_ != MAP_FAILED, "[decode_bench] no memory");
#ifdef MADV_HUGEPAGE
    madvise(memory_, num_bytes_, MADV_HUGEPAGE);
#endif
    for_pages({0, num_bytes_}, [&](std::size_t begin, std::size_t end) {
      std::memset(memory_ + begin, 1, end - begin);
    });
  }
  ~BareLoop() { munmap(memory_, num_bytes_ + kFetchedAhead); }
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  double num_bytes() const { return static_cast<double>(num_bytes_); }
  std::size_t num_jobs() const { return jobs_.size(); }
  void read_whole() { read({0, num_bytes_}); }
  void read_jobs() {
    for (const Part& job : jobs_) read(job);
  }

 private:
  struct Part {
    std::size_t offset;
    std::size_t num_bytes;
  };

  template <typename Body>
  void for_pages(const Part& part, Body&& body) {
    pool_.parallel_for(static_cast<std::int64_t>(part.num_bytes / kPage), 1,
                       [&](std::int64_t begin, std::int64_t end, int) {
                         body(part.offset + static_cast<std::size_t>(begin) * kPage,
                              part.offset + static_cast<std::size_t>(end) * kPage);
                       });
  }
  void read(const Part& part) {
    for_pages(part, [&](std::size_t begin, std::size_t end) {
      sink_.fetch_or(read_fetching_ahead(memory_ + begin, end - begin), std::memory_order_relaxed);
    });
  }

  cpu::ThreadPool& pool_;
  std::vector<Part> jobs_;
  std::size_t num_bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::atomic<std::uint64_t> sink_{0};
};

// One sequence of random tokens behind a decoder, as the engine would run it.
class DecodeStep {
 public:
  static Result<std::unique_ptr<DecodeStep>> load(const Options& options) {
    std::unique_ptr<DecodeStep> step(new DecodeStep);
    PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.model));
    PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(checkpoint));
    PAGODA_ASSIGN_OR_RETURN(step->exec_,
                            make_exec({.backend = Backend::kCpu, .num_threads = options.threads}));
    const EngineOptions engine = {
        .backend = Backend::kCpu, .max_model_len = options.context, .max_num_seqs = 1};
    PAGODA_ASSIGN_OR_RETURN(const KvLayout layout, lay_out_kv_cache(engine, config, Backend::kCpu));
    PAGODA_ASSIGN_OR_RETURN(Decoder decoder,
                            Decoder::load(*step->exec_, checkpoint, config, layout));
    step->decoder_.emplace(std::move(decoder));
    PAGODA_ASSIGN_OR_RETURN(KvSizing sizing,
                            size_kv_cache(engine, config, Backend::kCpu, available_memory_bytes()));
    PAGODA_ASSIGN_OR_RETURN(KvStore kv,
                            KvStore::create(*step->exec_, sizing.layout, sizing.num_blocks));
    step->kv_.emplace(std::move(kv));
    step->fill(options.context);
    return step;
  }

  Exec& exec() { return *exec_; }

  // Computes the last position of the context again.
  void run() {
    const StepBatch batch = upload(*exec_, batch_);
    const HiddenState hidden = decoder_->forward(*exec_, batch, *kv_);
    decoder_->logits(*exec_, hidden, batch.logits_rows);
  }

  // Returns the bytes that each job of a step reads, in the step's order: a layer's ops one after
  // the other, then what a step runs once.
  std::vector<double> job_bytes() {
    OpProfile profile;
    exec_->set_profile(std::shared_ptr<OpProfile>(&profile, [](OpProfile*) {}));
    profile.begin_step(StepPhase::kDecode);
    run();
    profile.end_step();
    exec_->set_profile(nullptr);
    const int num_layers = decoder_->config().num_layers();
    std::vector<double> of_layer, once;
    for (const OpTotals& op : profile.ops()) {
      if (op.call.products == 0) continue;
      const bool is_repeated = op.num_calls % num_layers == 0;
      const double bytes = op.call.read_bytes / static_cast<double>(op.num_calls);
      for (std::int64_t i = 0; i < op.num_calls / (is_repeated ? num_layers : 1); ++i)
        (is_repeated ? of_layer : once).push_back(bytes);
    }
    std::vector<double> jobs;
    for (int layer = 0; layer < num_layers; ++layer)
      jobs.insert(jobs.end(), of_layer.begin(), of_layer.end());
    jobs.insert(jobs.end(), once.begin(), once.end());
    return jobs;
  }

 private:
  DecodeStep() = default;

  void set_batch(int first, int count) {
    batch_.clear();
    std::uniform_int_distribution<int> token(0, decoder_->config().vocab_size - 1);
    for (int position = first; position < first + count; ++position) {
      batch_.token_ids.push_back(token(random_));
      batch_.positions.push_back(position);
      batch_.slot_mapping.push_back(position);
    }
    batch_.query_start = {0, count};
    batch_.context_lens = {first + count};
    batch_.logits_rows = {count - 1};
    batch_.num_decodes = count == 1 ? 1 : 0;
    batch_.max_blocks = (first + count + kv_->block_size() - 1) / kv_->block_size();
    for (int block = 0; block < batch_.max_blocks; ++block) batch_.block_tables.push_back(block);
  }

  void fill(int context) {
    for (int first = 0; first < context - 1; first += kTokensPerChunk) {
      set_batch(first, std::min(kTokensPerChunk, context - 1 - first));
      run();
    }
    set_batch(context - 1, 1);
  }

  std::unique_ptr<Exec> exec_;
  std::optional<Decoder> decoder_;
  std::optional<KvStore> kv_;
  HostBatch batch_;
  std::mt19937 random_{20261120};
};

// The figures that the turns gave for one of the loops.
struct Measured {
  std::vector<double> gb_per_s;
  std::vector<double> shares;  // of the same turn's limit
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  const char* name;
  std::function<void()> work;
  Measured slow, fast;  // turns below and above --split
};

void measure(Row& row, BareLoop& bare, double limit, double split) {
  const auto read_jobs = [&] { bare.read_jobs(); };
  const double before = gb_per_s(bare.num_bytes(), read_jobs);
  row.work();
  const double speed = gb_per_s(bare.num_bytes(), row.work);
  const double after = gb_per_s(bare.num_bytes(), read_jobs);
  if (std::max(before, after) > kSteadyRatio * std::min(before, after)) return;
  Measured& state = (before + after) / 2 < split ? row.slow : row.fast;
  state.gb_per_s.push_back(speed);
  state.shares.push_back(speed / limit);
}

void print(const char* name, const Measured& measured) {
  if (measured.shares.empty()) return;
  fmt::print("  {:<26} {:>6.1f} GB/s {:>5.0f} % of the limit, {} turns\n", name,
             median(measured.gb_per_s), 100 * median(measured.shares), measured.shares.size());
}

Status compare(const Options& options) {
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<DecodeStep> step, DecodeStep::load(options));
  BareLoop bare(cpu::pool_of(step->exec()), step->job_bytes());
  const MachineProbe probe(step->exec().num_threads());
  Row rows[] = {{"bare, in one piece", [&] { bare.read_whole(); }, {}, {}},
                {"bare, in the step's jobs", [&] { bare.read_jobs(); }, {}, {}},
                {"the step", [&] { step->run(); }, {}, {}}};
  fmt::print("{} on {} threads, context {}: {:.1f} MB in {} jobs a step\n", options.model,
             step->exec().num_threads(), options.context, bare.num_bytes() / 1e6, bare.num_jobs());
  for (const double end = now_s() + options.seconds; now_s() < end;) {
    for (Row& row : rows) measure(row, bare, probe.measure_read_gb_per_s(), options.split_gb_per_s);
  }
  const auto print_state = [&](const char* state, Measured Row::*of) {
    if ((rows[0].*of).shares.empty()) return;
    fmt::print("{}\n", state);
    for (const Row& row : rows) print(row.name, row.*of);
  };
  const std::string split = fmt::format("{:.0f} GB/s", options.split_gb_per_s);
  print_state(("turns whose bare loop read less than " + split).c_str(), &Row::slow);
  print_state(("turns whose bare loop read at least " + split).c_str(), &Row::fast);
  return ok_status();
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  pagoda::Options options;
  CLI::App app("A decode step on the cpu backend, beside a bare loop over as many bytes");
  app.add_option("MODEL", options.model, "A GGUF file or a folder")->required();
  app.add_option("--threads", options.threads, "Worker threads; 0: what the machine has");
  app.add_option("--context", options.context, "Tokens, the step's own included")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--seconds", options.seconds, "For all turns together");
  app.add_option("--split", options.split_gb_per_s, "GB/s between the machine's two states");
  CLI11_PARSE(app, argc, argv);
  const pagoda::Status status = pagoda::compare(options);
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  return 0;
}
