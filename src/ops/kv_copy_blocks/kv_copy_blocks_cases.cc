#include "ops/kv_case.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/op_cases.h"

namespace pagoda {
namespace {

struct CopyShape {
  int copies;
  int kv_heads;
  int head_dim;
  int block_size;
  KvFormats formats;
  bool is_large = false;
};

// Returns copy i, which the cases count as token i: from block 2 i + 1 to block 2 i, of the whole
// block or of its first tokens.
BlockCopy copy_of(const CopyShape& shape, int i) {
  return {.source = 2 * i + 1,
          .destination = 2 * i,
          .num_tokens = shape.block_size - i * 3 % (shape.block_size + 1)};
}

Result<CaseRun> prepare(const CopyShape& shape, Exec& exec, std::span<const int> copies) {
  auto host = std::make_shared<HostBatch>();
  host->query_start = {0};
  for (const int i : copies) host->block_copies.push_back(copy_of(shape, i));
  const Shape cache = {2 * shape.copies, shape.block_size, shape.kv_heads, shape.head_dim};
  KvView view;
  view.keys =
      upload_kv_entries(exec, shape.formats.keys, random_values(1, cache.num_elements()), cache);
  view.values =
      upload_kv_entries(exec, shape.formats.values, random_values(2, cache.num_elements()), cache);
  return CaseRun([&exec, view, host, batch = upload(exec, *host)]() mutable {
    view = kv_copy_blocks(exec, view, batch);
    return arrays_of(view);
  });
}

OpCase make_kv_copy_blocks_case(const CopyShape& shape) {
  OpCase result{
      .op = "kv_copy_blocks",
      .description = fmt::format("{} blocks of {} x {} x {} {}", shape.copies, shape.block_size,
                                 shape.kv_heads, shape.head_dim, name_of(shape.formats)),
      .num_tokens = shape.copies,
      .rows_are_tokens = false,
      .tolerance = {.cpu = 0, .mlx = 0, .cuda = 0}};
  result.prepare = [shape](Exec& exec, std::span<const int> copies) {
    return prepare(shape, exec, copies);
  };
  for (int i = 0; i < shape.copies; ++i) {
    result.bytes += 2.0 * copy_of(shape, i).num_tokens * shape.kv_heads *
                    static_cast<double>(kv_bytes(shape.formats, shape.head_dim));
  }
  result.is_large = shape.is_large;
  return result;
}

}  // namespace

std::vector<OpCase> kv_copy_blocks_cases() {
  std::vector<OpCase> cases;
  for (const KvFormats& formats : kKvCaseFormats) {
    for (const CopyShape& shape :
         {CopyShape{1, 1, 16, 1, formats}, CopyShape{5, 3, 64, 16, formats},
          CopyShape{20, 2, 24, 8, formats}, CopyShape{2, 1, 128, 300, formats},
          CopyShape{3, 1, 18, 4, formats}, CopyShape{3, 1, 17, 4, formats},
          CopyShape{64, 3, 64, 16, formats, true}}) {
      if (fit(formats, shape.head_dim)) cases.push_back(make_kv_copy_blocks_case(shape));
    }
  }
  return cases;
}

}  // namespace pagoda
