// Kernels for emulator_test.cc. If a kernel has kIsSound, the emulator must find an error with
// kIsSound = 0, and none with kIsSound = 1.
#include "backend/gpu/kernel.metal.h"

struct TestParameters {
  int n;
};

#define PAGODA_TEST_KERNEL(NAME)                                                             \
  [[kernel]] void NAME(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], \
                       constant TestParameters& p [[buffer(2)]],                             \
                       threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD)

template <int kIsSound>
PAGODA_TEST_KERNEL(read_unwritten) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound || thread_id != 5) shared[thread_id] = x[thread_id];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = shared[thread_id ^ 1];
}

// Reads values that only an earlier threadgroup wrote: they are gone.
template <int kIsSound>
PAGODA_TEST_KERNEL(read_of_earlier_threadgroup) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound || group.x == 0) shared[thread_id] = x[thread_id];
  out[place] = shared[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(race_of_simd_groups) {
  const uint place = group.x * 64 + thread_id;
  shared[thread_id] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  shared[thread_id] = x[thread_id];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (kIsSound) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = shared[thread_id ^ 32];
}

// Writes after another SIMD group's read, without a barrier between.
template <int kIsSound>
PAGODA_TEST_KERNEL(write_behind_read) {
  const uint place = group.x * 64 + thread_id;
  shared[thread_id] = x[thread_id];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float other = shared[thread_id ^ 32];
  if (kIsSound) threadgroup_barrier(mem_flags::mem_threadgroup);
  shared[thread_id] = other;
  out[place] = shared[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(race_of_lanes) {
  const uint place = group.x * 64 + thread_id;
  shared[thread_id] = 0;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  shared[thread_id] = x[thread_id];
  if (kIsSound) simdgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = shared[thread_id ^ 1];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(same_word_of_lanes) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound ? lane == 0 : lane < 2) shared[simd_group] = 1;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = shared[simd_group];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(race_of_threadgroups) {
  if (thread_id == 0) out[kIsSound ? group.x : 0] = x[0];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(read_of_other_threadgroup) {
  if (thread_id == 0) {
    const float before = out[kIsSound ? group.x : 0];
    out[group.x] = before + 1;
  }
}

template <int kIsSound>
PAGODA_TEST_KERNEL(barrier_of_other_memory) {
  const uint place = group.x * 64 + thread_id;
  out[place] = x[thread_id];
  threadgroup_barrier(kIsSound ? mem_flags::mem_device : mem_flags::mem_threadgroup);
  const float other = out[place ^ 32];
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[place] = other;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(barrier_of_some) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound || simd_group == 0) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = x[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(two_barriers) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound || simd_group == 0)
    threadgroup_barrier(mem_flags::mem_threadgroup);
  else
    threadgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = x[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(sum_of_some_lanes) {
  const uint place = group.x * 64 + thread_id;
  float sum = x[thread_id];
  if (kIsSound || lane < 16) sum = simd_sum(sum);
  out[place] = sum;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(two_sums) {
  const uint place = group.x * 64 + thread_id;
  float sum;
  if (kIsSound || lane < 16)
    sum = simd_sum(x[thread_id]);
  else
    sum = simd_sum(x[thread_id] + 1);
  out[place] = sum;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(shuffle_from_nowhere) {
  const uint place = group.x * 64 + thread_id;
  out[place] = simd_shuffle(x[thread_id], kIsSound ? 31 : 32);
}

template <int kIsSound>
PAGODA_TEST_KERNEL(load_outside) {
  const uint place = group.x * 64 + thread_id;
  out[place] = x[kIsSound ? thread_id : thread_id + p.n];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(load_before) {
  const uint place = group.x * 64 + thread_id;
  out[place] = x[kIsSound ? int(thread_id) : int(thread_id) - p.n];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(wide_load_outside) {
  const uint place = group.x * 64 + thread_id;
  if (thread_id < (kIsSound ? 16 : 17)) out[place] = ((device const float4*)x)[thread_id].x;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(store_outside) {
  const uint place = group.x * 64 + thread_id;
  out[kIsSound ? place : place + 2 * p.n] = x[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(threadgroup_store_outside) {
  const uint place = group.x * 64 + thread_id;
  shared[kIsSound ? thread_id : thread_id + p.n] = x[thread_id];
  out[place] = shared[thread_id];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(parameters_outside) {
  const uint place = group.x * 64 + thread_id;
  constant int* const words = &p.n;
  out[place] = x[words[kIsSound ? 0 : p.n] / 2];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(stack_outside) {
  const uint place = group.x * 64 + thread_id;
  float local[16];
  for (int i = 0; i < 16; ++i) local[(i * p.n) % 16] = x[i];
  thread const float* const first = local;
  out[place] = first[kIsSound ? p.n % 16 : p.n * 5000];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(array_outside) {
  const uint place = group.x * 64 + thread_id;
  float local[16];
  for (int i = 0; i < 16; ++i) local[(i * p.n) % 16] = x[i];
  out[place] = local[kIsSound ? 0 : p.n / 4];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(signed_overflow) {
  const uint place = group.x * 64 + thread_id;
  out[place] = float(p.n * (kIsSound ? 1 : 1 << 26));
}

template <int kIsSound>
PAGODA_TEST_KERNEL(float_that_is_no_integer) {
  const uint place = group.x * 64 + thread_id;
  out[place] = float(uint(kIsSound ? x[thread_id] : -1.0f - x[thread_id]));
}

template <int kIsSound>
PAGODA_TEST_KERNEL(division_by_zero) {
  const uint place = group.x * 64 + thread_id;
  out[place] = float(100u / uint(kIsSound ? p.n : p.n - 64));
}

template <int kIsSound>
PAGODA_TEST_KERNEL(misaligned_load) {
  const uint place = group.x * 64 + thread_id;
  device const float* const first = x + (kIsSound ? 4 : 1);
  const float4 four = *(device const float4*)first;
  out[place] = four.x + four.y + four.z + four.w;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(store_to_input) {
  const uint place = group.x * 64 + thread_id;
  if (!kIsSound) ((device float*)x)[thread_id] = 0;
  out[place] = 0;
}

template <int kIsSound>
PAGODA_TEST_KERNEL(read_of_fresh_output) {
  const uint place = group.x * 64 + thread_id;
  if (kIsSound) out[place] = x[thread_id];
  out[place] += 1;
}

// Two threadgroups write two bytes of one word.
template <int kIsSound>
PAGODA_TEST_KERNEL(bytes_of_a_word) {
  threadgroup uchar* const bytes = (threadgroup uchar*)shared;
  bytes[thread_id] = uchar(group.x);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_id == 0) ((device uchar*)out)[kIsSound ? group.x : group.x / 2] = bytes[1];
}

template <int kIsSound>
PAGODA_TEST_KERNEL(matrix_of_many) {
  simdgroup_float8x8 matrix;
  simdgroup_load(matrix, kIsSound ? x : x + lane / 16 * 4, 4);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (simd_group == 0) simdgroup_store(matrix, out + group.x * 64, 8);
}

template <int kIsSound>
PAGODA_TEST_KERNEL(atomic_and_plain) {
  const uint place = group.x * 64 + thread_id;
  threadgroup atomic_uint* const count = (threadgroup atomic_uint*)shared;
  if (thread_id == 0) atomic_store_explicit(count, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  if (kIsSound) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[place] = float(((threadgroup uint*)shared)[0]);
}

// Reads what another threadgroup writes if x and out are the same buffer.
[[kernel]] void read_of_other_half(device const float* x [[buffer(0)]],
                                   device float* out [[buffer(1)]],
                                   constant TestParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const uint place = group.x * 32 + lane;
  out[place] = x[int(place) ^ p.n];
}

// Records the order in which threads run.
[[kernel]] void note_order(device atomic_uint* next [[buffer(0)]], device uint* out [[buffer(1)]],
                           constant TestParameters& p [[buffer(2)]], PAGODA_THREAD) {
  const uint turn = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);
  out[turn] = group.x * 64 + thread_id;
}

[[kernel]] void reduce_lanes(device const float* x [[buffer(0)]],
                             device const int* integers [[buffer(1)]],
                             device float* out [[buffer(2)]],
                             device int* out_integers [[buffer(3)]],
                             constant TestParameters& p [[buffer(4)]], PAGODA_THREAD) {
  out[lane] = simd_sum(x[lane]);
  out[32 + lane] = simd_max(x[lane]);
  out[64 + lane] = simd_min(x[lane]);
  out[96 + lane] = simd_shuffle_xor(x[lane], 5);
  out[128 + lane] = simd_broadcast(x[lane], 7);
  out_integers[lane] = simd_sum(integers[lane]);
  out_integers[32 + lane] = simd_max(integers[lane]);
  out_integers[64 + lane] = simd_prefix_exclusive_sum(integers[lane]);
  out_integers[96 + lane] = simd_any(integers[lane] == p.n) ? 1 : 0;
  out_integers[128 + lane] = simd_all(integers[lane] == p.n) ? 1 : 0;
}

[[kernel]] void multiply_matrices(device const float* a [[buffer(0)]],
                                  device const float* b [[buffer(1)]],
                                  device float* out [[buffer(2)]],
                                  constant TestParameters& p [[buffer(3)]], PAGODA_THREAD) {
  simdgroup_float8x8 left, right, sum = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, p.n);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, out, 8);
}

// Tests denormals: the product in out[0] is a denormal, and out[1] has a denormal as a factor.
[[kernel]] void make_denormals(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                               constant TestParameters& p [[buffer(2)]], PAGODA_THREAD) {
  if (lane == 0) out[0] = x[0] * x[1];
  if (lane == 1) out[1] = x[2] * x[3];
}

[[kernel]] void round_to_16_bits(device const float* x [[buffer(0)]],
                                 device bfloat* bfloats [[buffer(1)]],
                                 device half* halves [[buffer(2)]],
                                 constant TestParameters& p [[buffer(3)]], PAGODA_THREAD) {
  if (int(lane) >= p.n) return;
  bfloats[lane] = bfloat(x[lane]);
  halves[lane] = half(x[lane]);
}

// Reads one line, a line in each of 32 rows twice, and every second element of two lines.
[[kernel]] void read_lines(device const float* x [[buffer(0)]],
                           device const float* rows [[buffer(1)]],
                           device const bfloat* pairs [[buffer(2)]],
                           device float* out [[buffer(3)]],
                           constant TestParameters& p [[buffer(4)]], PAGODA_THREAD) {
  float sum = x[thread_id] + float(pairs[thread_id * 2]);
  for (int i = 0; i < p.n; ++i) sum += rows[thread_id * 32 + i];
  out[thread_id] = sum;
}

// Reads n lines, one after another, and then the first line again.
[[kernel]] void read_again(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                           constant TestParameters& p [[buffer(2)]], PAGODA_THREAD) {
  float sum = 0;
  for (int i = 0; i < p.n; ++i) sum += x[i * 32 + lane];
  simdgroup_barrier(mem_flags::mem_none);
  out[thread_id] = sum + x[lane];
}

#include "tests/metal/emulator/register_kernel.h"

#define PAGODA_REGISTER_PAIR(NAME) \
  PAGODA_REGISTER_KERNEL(NAME, 0)  \
  PAGODA_REGISTER_KERNEL(NAME, 1)

PAGODA_REGISTER_PAIR(read_unwritten)
PAGODA_REGISTER_PAIR(read_of_earlier_threadgroup)
PAGODA_REGISTER_PAIR(race_of_simd_groups)
PAGODA_REGISTER_PAIR(write_behind_read)
PAGODA_REGISTER_PAIR(race_of_lanes)
PAGODA_REGISTER_PAIR(same_word_of_lanes)
PAGODA_REGISTER_PAIR(race_of_threadgroups)
PAGODA_REGISTER_PAIR(read_of_other_threadgroup)
PAGODA_REGISTER_PAIR(barrier_of_other_memory)
PAGODA_REGISTER_PAIR(barrier_of_some)
PAGODA_REGISTER_PAIR(two_barriers)
PAGODA_REGISTER_PAIR(sum_of_some_lanes)
PAGODA_REGISTER_PAIR(two_sums)
PAGODA_REGISTER_PAIR(shuffle_from_nowhere)
PAGODA_REGISTER_PAIR(load_outside)
PAGODA_REGISTER_PAIR(load_before)
PAGODA_REGISTER_PAIR(wide_load_outside)
PAGODA_REGISTER_PAIR(store_outside)
PAGODA_REGISTER_PAIR(threadgroup_store_outside)
PAGODA_REGISTER_PAIR(parameters_outside)
PAGODA_REGISTER_PAIR(stack_outside)
PAGODA_REGISTER_PAIR(array_outside)
PAGODA_REGISTER_PAIR(signed_overflow)
PAGODA_REGISTER_PAIR(float_that_is_no_integer)
PAGODA_REGISTER_PAIR(division_by_zero)
PAGODA_REGISTER_PAIR(misaligned_load)
PAGODA_REGISTER_PAIR(store_to_input)
PAGODA_REGISTER_PAIR(read_of_fresh_output)
PAGODA_REGISTER_PAIR(bytes_of_a_word)
PAGODA_REGISTER_PAIR(matrix_of_many)
PAGODA_REGISTER_PAIR(atomic_and_plain)
PAGODA_REGISTER_KERNEL(read_of_other_half)
PAGODA_REGISTER_KERNEL(note_order)
PAGODA_REGISTER_KERNEL(reduce_lanes)
PAGODA_REGISTER_KERNEL(multiply_matrices)
PAGODA_REGISTER_KERNEL(make_denormals)
PAGODA_REGISTER_KERNEL(round_to_16_bits)
PAGODA_REGISTER_KERNEL(read_lines)
PAGODA_REGISTER_KERNEL(read_again)
