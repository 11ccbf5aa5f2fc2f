// KvView: one layer's keys and values as kernels see them.
//
// All backends share one layout. An entry is written once, in the step of its token, and read only
// as stored.
//
//   elements  [num_blocks, block_size, num_kv_heads, head_dim]; of int4 [..., head_dim / 2] bytes
//   scales    [num_blocks, num_kv_heads, num_scales, block_size] bfloat16, so that a head's scales
//             of consecutive positions are adjacent
//   slot      block * block_size + offset in the block
//
// A sequence's position p is in block block_tables[seq, p / block_size] at offset p % block_size.
// The contiguous layout is the same with one block per sequence, as long as the longest context.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/kv_format.h"
#include "core/status.h"
#include "tensor/exec.h"
#include "tensor/tensor.h"

namespace pagoda {

// A layer's keys, or its values.
struct KvEntries {
  KvFormat format = KvFormat::kFloat32;
  Tensor elements;  // in the format's dtype
  Tensor scales;    // undefined if elements are the values themselves

  std::int64_t head_dim() const { return 8 * entry_bytes() / traits_of(format).bits; }
  // Returns the bytes of one token and head, without scales.
  std::int64_t entry_bytes() const {
    return elements.extent(3) * static_cast<std::int64_t>(dtype_size(elements.dtype()));
  }
};

// Allocates zeroed memory for keys, or values, of shape [num_blocks, block_size, num_kv_heads,
// head_dim]. If `elements` is defined, the new entries share its memory, which must be as large.
// REQUIRES: fits(format, head_dim). kResourceExhausted if there is too little memory.
Result<KvEntries> allocate_kv_entries(Exec& exec, KvFormat format, const Shape& shape,
                                      const Tensor& elements = {});

// The arrays that a view is made of; extent 0 of each is num_blocks.
class KvArrays {
 public:
  void push_back(const Tensor& array) { arrays_[count_++] = array; }

  std::size_t size() const { return count_; }
  const Tensor& operator[](std::size_t i) const { return arrays_[i]; }
  const Tensor& back() const { return arrays_[count_ - 1]; }
  const Tensor* begin() const { return arrays_.data(); }
  const Tensor* end() const { return arrays_.data() + count_; }

 private:
  std::array<Tensor, 4> arrays_;
  std::size_t count_ = 0;
};

struct KvView {
  KvEntries keys;
  KvEntries values;

  std::int64_t num_blocks() const { return keys.elements.extent(0); }
  std::int64_t block_size() const { return keys.elements.extent(1); }
  std::int64_t num_slots() const { return num_blocks() * block_size(); }
  std::int64_t num_kv_heads() const { return keys.elements.extent(2); }
  std::int64_t head_dim() const { return keys.head_dim(); }
  // Returns the bytes that a token takes in all arrays.
  std::int64_t bytes_per_token() const {
    std::int64_t bytes = 0;
    for (const Tensor& array : arrays()) {
      bytes += array.num_elements() * static_cast<std::int64_t>(dtype_size(array.dtype()));
    }
    return bytes / num_slots();
  }

  KvArrays arrays() const {
    KvArrays all;
    for (const KvEntries* entries : {&keys, &values}) {
      all.push_back(entries->elements);
      if (entries->scales.defined()) all.push_back(entries->scales);
    }
    return all;
  }
  KvFormats formats() const { return {keys.format, values.format}; }

  // Makes a view from its formats() and arrays(), which have the order of arrays().
  static KvView of(const KvFormats& formats, std::span<const Tensor> arrays) {
    KvView view;
    view.keys.format = formats.keys;
    view.values.format = formats.values;
    for (KvEntries* entries : {&view.keys, &view.values}) {
      entries->elements = arrays.front();
      const bool has_scales = is_quantized(entries->format);
      if (has_scales) entries->scales = arrays[1];
      arrays = arrays.subspan(has_scales ? 2 : 1);
    }
    return view;
  }
};

}  // namespace pagoda
