// Counts the bytes that kernels for Apple GPUs read and write, while the emulator runs them, and
// compares them with the least possible:
// - the bytes of all accesses;
// - the bytes of the lines of 128 bytes that accesses touch;
// - the bytes that a first-level cache of 8 KB fetches.
// It also counts a step's work in MLX.
//
//   pagoda_metal_bytes [--only weights|products|attention|step|cases]... [--op OP]...
//
// Small shapes give the ratios of large ones, because these do not depend on the number of panels,
// heads or threadgroups.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "ops/attention/attention_cases.h"
#include "ops/expert_case.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_cases.h"
#include "ops/op_cases.h"
#include "tests/metal/stand_in.h"
#include "tests/metal/step_counts.h"

namespace pagoda {
namespace {

namespace stand_in = mlx::stand_in;

constexpr double kLineBytes = 128;
constexpr double kMostFlops = 3e7;  // of the largest case that is run; it takes about a second

const CaseFormat kQ4K = WeightFormat::kQ4_K;
const CaseFormat kQ6K = WeightFormat::kQ6_K;
const CaseFormat kAffine4 = AffineLayout{4, 64, WeightFormat::kBF16};
const CaseFormat kBF16 = WeightFormat::kBF16;

struct Arguments {
  std::vector<std::string> only;
  std::vector<std::string> ops;

  bool wants(std::string_view section) const {
    if (only.empty()) return section != "cases";
    return std::ranges::find(only, section) != only.end();
  }
};

// Bytes of accesses to a buffer, or to several.
struct Asked {
  double bytes = 0;
  double line_bytes = 0;  // bytes of the lines that accesses touch
  double fetched = 0;     // bytes that the first-level cache fetches
  double stored = 0;

  void add(const emulator::BufferCounts& counts) {
    bytes += static_cast<double>(counts.bytes_loaded);
    line_bytes += kLineBytes * static_cast<double>(counts.lines);
    fetched += static_cast<double>(counts.bytes_fetched);
    stored += static_cast<double>(counts.bytes_stored);
  }
};

// Makes an Exec whose kernels count accesses, with matrix units that add in the given order.
std::unique_ptr<Exec> make_counting_exec(
    emulator::MatrixOrder order = emulator::MatrixOrder::kAscending) {
  stand_in::Options options;
  options.is_traced = true;
  options.emulator.counts = true;
  options.emulator.matrix_order = order;
  stand_in::configure(options);
  return make_exec({.backend = Backend::kMlx}).value();
}

std::vector<stand_in::KernelCounts> run_counted(Exec& exec, const OpCase& op_case) {
  stand_in::reset_counts();
  const auto outputs = run_case(exec, op_case, all_tokens(op_case));
  PAGODA_CHECK(outputs.ok(), fmt::format("[metal_bytes] {} {}: {}", op_case.op, op_case.description,
                                         outputs.status().message()));
  return stand_in::kernel_counts();
}

// Adds up the accesses to these buffers by kernels whose name begins with `name`.
Asked asked_of(const std::vector<stand_in::KernelCounts>& kernels, std::string_view name,
               std::initializer_list<std::size_t> buffers) {
  Asked sum;
  for (const stand_in::KernelCounts& kernel : kernels) {
    if (!kernel.name.starts_with(name)) continue;
    for (const std::size_t buffer : buffers) sum.add(kernel.buffers.at(buffer));
  }
  PAGODA_CHECK(sum.bytes > 0, fmt::format("[metal_bytes] no kernel is {}", name));
  return sum;
}

void print_asked(const std::string& what, const Asked& asked, double least) {
  fmt::print("{:<64}{:>14.0f}{:>8.3f}{:>8.3f}{:>8.3f}\n", what, least, asked.bytes / least,
             asked.line_bytes / asked.bytes, asked.fetched / least);
}

void print_heading(std::string_view title, std::string_view least) {
  fmt::print("\n{}\n{:<64}{:>14}{:>8}{:>8}{:>8}\n", title, "", least, "asked", "lines", "8 KB");
}

void print_weight_bytes() {
  constexpr std::int64_t kRows = 1024, kCols = 2048;
  const auto exec = make_counting_exec();
  fmt::print("\nBytes of a weight of {} x {} on the GPU, of those in its file\n", kRows, kCols);
  std::vector<CaseFormat> formats;
  for (const WeightFormat format : kWeightFormats) formats.emplace_back(format);
  for (const int bits : {2, 3, 4, 5, 6, 8})
    formats.emplace_back(AffineLayout{bits, 64, WeightFormat::kBF16});
  for (const CaseFormat& format : formats) {
    const HostTensor parts[] = {random_matrix(1, format, kRows, kCols)};
    const Weight weight = prepare_weight(*exec, parts).value();
    fmt::print("{:<64}{:>8.4f}\n", name_of(format),
               static_cast<double>(weight.packed->num_bytes()) /
                   static_cast<double>(packed_bytes(format, kRows * kCols)));
  }
}

// Prints products of few rows. Each product reads the whole weight.
void print_few_rows() {
  constexpr int kColumns = 1024, kWidth = 2048;
  const auto exec = make_counting_exec();
  print_heading(
      fmt::format("Weights of {} columns x {} k, by few rows: asked / file's, lines / asked, "
                  "through a cache of 8 KB / file's",
                  kColumns, kWidth),
      "file's");
  for (const CaseFormat& format : {kQ4K, kQ6K, kAffine4, kBF16}) {
    for (const int rows : {1, 2, 3, 4}) {
      const auto counts = run_counted(
          *exec, make_linear_case({.tokens = rows, .cols = kWidth, .parts = {{format, kColumns}}}));
      print_asked(fmt::format("{}, {} rows", name_of(format), rows),
                  asked_of(counts, "linear_few", {1}),
                  static_cast<double>(packed_bytes(format, std::int64_t{kColumns} * kWidth)));
    }
  }
}

// Prints products of many rows. They are compared with the bytes of tiles of 64 rows x 32 columns
// that read their x and weights once.
void print_many_rows() {
  constexpr int kRows = 512, kColumns = 1024, kWidth = 1024;
  constexpr int kTileRows = 64, kTileColumns = 32;
  print_heading(
      fmt::format("x and weights of {} rows x {} columns x {} k: asked / by tiles of {} x {}",
                  kRows, kColumns, kWidth, kTileRows, kTileColumns),
      "by tiles");
  constexpr double kTiles = double{kRows} / kTileRows * kColumns / kTileColumns;
  const auto weights =
      static_cast<double>(packed_bytes(kAffine4, std::int64_t{kTileColumns} * kWidth));
  for (const auto& [name, order] : {std::pair{"matrix units", emulator::MatrixOrder::kAscending},
                                    {"lanes", emulator::MatrixOrder::kByPlace}}) {
    const auto exec = make_counting_exec(order);
    const auto counts = run_counted(
        *exec,
        make_linear_case({.tokens = kRows, .cols = kWidth, .parts = {{kAffine4, kColumns}}}));
    const double x = kTiles * kTileRows * kWidth * sizeof(float);
    const std::string what = fmt::format("{} by {}", name_of(kAffine4), name);
    print_asked(what, asked_of(counts, "linear_many", {0, 1}), x + kTiles * weights);
    print_asked(what + ": x", asked_of(counts, "linear_many", {0}), x);
    print_asked(what + ": weights", asked_of(counts, "linear_many", {1}), kTiles * weights);
  }
}

// Prints the products of a mixture's experts. The least is one read of each chosen expert, for each
// 32 rows that it has.
void print_experts() {
  constexpr int kRowsAtOnce = 32;
  const auto exec = make_counting_exec();
  print_heading("Weights of 8 experts of 32, 512 x 1024 k, Q4_0: asked / once for 32 rows", "once");
  for (const int tokens : {1, 4, 8, 256}) {
    const ExpertShape shape = {
        .tokens = tokens, .num_chosen = 8, .num_experts = 32, .cols = 1024, .dim = 512};
    std::vector<int> all(tokens);
    std::iota(all.begin(), all.end(), 0);
    std::map<int, int> rows;  // of each expert
    for (const int expert : experts_of(shape, all)) ++rows[expert];
    int tiles = 0;
    for (const auto& [expert, count] : rows) tiles += (count + kRowsAtOnce - 1) / kRowsAtOnce;
    const auto least = static_cast<double>(
        packed_bytes(shape.format, std::int64_t{tiles} * shape.dim * shape.cols));
    const std::string what = fmt::format("{} tokens, {} experts", tokens, rows.size());
    print_asked(what + ": gates and up parts",
                asked_of(run_counted(*exec, make_expert_gated_linear_case(shape)),
                         "expert_gated_linear", {1}),
                2 * least);
    const auto counts = run_counted(*exec, make_expert_linear_case(shape));
    const std::string_view kernel = tokens <= 4 ? "expert_linear_few" : "expert_linear_many";
    print_asked(what + ": down", asked_of(counts, kernel, {1}), least);
  }
}

// Prints attention's reads of keys and values. The least is one read per KV head for a decode, and
// one read per KV head and 32 tokens for a prompt.
void print_attention(KvFormat format) {
  constexpr int kTokensAtOnce = 32;
  const std::initializer_list<std::size_t> of_cache = {1, 2, 9, 10};  // elements, then scales
  const auto exec = make_counting_exec();
  print_heading(fmt::format("Keys and values of 2 heads a kv head, dim 128, {}: asked / once a kv "
                            "head",
                            kv_format_name(format)),
                "once");
  const AttentionShape shape{
      .heads = 4, .kv_heads = 2, .head_dim = 128, .formats = {format, format}};
  const KvFormatTraits traits = traits_of(format);
  const double bits_of_entry = shape.head_dim * traits.bits + 16.0 * traits.num_scales;
  const double bytes_of_key = 2.0 * shape.kv_heads * bits_of_entry / 8;  // with its value
  for (const std::uint32_t layout_seed : {1u, 0u}) {
    for (const int context : {128, 500, 1000, 2000}) {
      AttentionShape decode = shape;
      decode.seqs = {{context, 1}};
      decode.layout_seed = layout_seed;
      const auto counts = run_counted(*exec, make_attention_case(decode));
      print_asked(fmt::format("a decode among {}, blocks {}", context,
                              layout_seed == 0 ? "in order" : "in no order"),
                  asked_of(counts, "attention_decode", of_cache), context * bytes_of_key);
    }
  }
  AttentionShape prompt = shape;
  prompt.seqs = {{512, 512}};
  double keys = 0;  // sum of the keys that each run of tokens sees
  for (int end = kTokensAtOnce; end <= 512; end += kTokensAtOnce) keys += end;
  const auto counts = run_counted(*exec, make_attention_case(prompt));
  print_asked(fmt::format("a prompt of 512, once for {} tokens", kTokensAtOnce),
              asked_of(counts, "attention_prompt", of_cache), keys * bytes_of_key);
}

// Returns the kernel's op: the longest op name with which the kernel's name begins.
std::string op_of(std::string_view kernel, const std::set<std::string>& ops) {
  std::string found;
  for (const std::string& op : ops) {
    if (kernel.starts_with(op) && op.size() > found.size()) found = op;
  }
  return found;
}

void print_cases(const Arguments& arguments) {
  std::set<std::string> ops;
  for (const OpCase& op_case : all_op_cases()) ops.insert(op_case.op);
  const auto exec = make_counting_exec();
  print_heading(
      "Cases: loaded and stored / what the op reads and writes once; 8 KB: with what is stored",
      "once");
  for (const OpCase& op_case : all_op_cases()) {
    const bool is_wanted = arguments.ops.empty() ||
                           std::ranges::find(arguments.ops, op_case.op) != arguments.ops.end();
    if (!is_wanted || (op_case.is_large && op_case.flops > kMostFlops) || op_case.bytes == 0)
      continue;
    Asked sum;
    for (const stand_in::KernelCounts& kernel : run_counted(*exec, op_case)) {
      if (op_of(kernel.name, ops) != op_case.op) continue;
      for (const emulator::BufferCounts& buffer : kernel.buffers) sum.add(buffer);
    }
    sum.bytes += sum.stored;
    sum.fetched += sum.stored;
    print_asked(op_case.op + " " + op_case.description, sum, op_case.bytes);
  }
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  pagoda::Arguments arguments;
  CLI::App app("What kernels for Apple GPUs ask of memory, on the emulator.");
  app.add_option("--only", arguments.only, "weights, products, attention, step, cases")
      ->check(CLI::IsMember({"weights", "products", "attention", "step", "cases"}));
  app.add_option("--op", arguments.ops, "Cases of these ops");
  CLI11_PARSE(app, argc, argv);
  if (arguments.wants("weights")) pagoda::print_weight_bytes();
  if (arguments.wants("products")) {
    pagoda::print_few_rows();
    pagoda::print_many_rows();
    pagoda::print_experts();
  }
  for (const auto format :
       {pagoda::KvFormat::kBFloat16, pagoda::KvFormat::kInt8, pagoda::KvFormat::kInt4}) {
    if (arguments.wants("attention")) pagoda::print_attention(format);
  }
  if (arguments.wants("step")) pagoda::print_step_counts();
  if (arguments.wants("cases")) pagoda::print_cases(arguments);
}
