"""Every .metal file of ours through a second front end, and by the rules of backend/gpu/kernel.metal.h.

Apple's compiler is on Macs alone. clang's C++ for OpenCL has the same named address spaces and the same lack of doubles,
and refuses most of what Apple's would: snippets here show what. MLX's own kernels show that it takes what Apple's takes.
"""

import collections
import pathlib
import re
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "opencl")]
import front_end  # noqa: E402
import metal_source  # noqa: E402
import mlx_kernels  # noqa: E402

FILES = metal_source.metal_files()
HEADERS = sorted(metal_source.ROOT.glob("src/**/*.metal.h"))
PARAMETERS = sorted(metal_source.ROOT.glob("src/**/*_metal.h"))
PREAMBLE = '#include "backend/gpu/kernel.metal.h"\n'


def name_of(path):
    return path.name


@pytest.fixture(params=FILES, ids=name_of)
def file(request):
    return request.param


def test_the_front_end_takes_the_kernels(file):
    text = file.read_text()
    registered = front_end.registrations()
    for kernel in metal_source.kernels_in(metal_source.without_comments(text)):
        if kernel.is_template:
            assert registered.get(kernel.name), f"no test compiles {kernel.name}: tests/metal/kernels registers none"
        for arguments in registered.get(kernel.name, []):
            text += front_end.instantiation(kernel.name, arguments) if arguments else ""
    assert front_end.errors_of(text) == ""


BUFFER = re.compile(r"device (?:const )?\w+\* (?:const )?\w+ \[\[buffer\((\d+)\)\]\]")
STRUCT = re.compile(r"constant (\w+Parameters)& \w+ \[\[buffer\((\d+)\)\]\]")
SHARED = "threadgroup float* shared [[threadgroup(0)]]"


def test_arguments_stand_in_their_places(file):
    """Buffers by their index, then the parameters, the threadgroup's memory, and the thread."""
    kernels = metal_source.kernels_in(metal_source.without_comments(file.read_text()))
    assert kernels, "a .metal file has kernels; what kernels share is a .metal.h"
    for kernel in kernels:
        *arguments, last = kernel.arguments
        assert last == "PAGODA_THREAD", kernel.name
        if arguments[-1] == SHARED:
            arguments.pop()
        struct = STRUCT.fullmatch(arguments[-1])
        assert struct, f"{kernel.name}: {arguments[-1]} is not its parameters"
        buffers = [BUFFER.fullmatch(argument) for argument in arguments[:-1]]
        assert all(buffers), f"{kernel.name}: {arguments[:-1]} are not all buffers"
        assert [int(buffer[1]) for buffer in buffers] == list(range(len(buffers))), kernel.name
        assert int(struct[2]) == len(buffers), kernel.name


def test_kernels_have_names_of_their_own():
    owners = collections.defaultdict(list)
    for path in FILES:
        for kernel in metal_source.kernels_in(metal_source.without_comments(path.read_text())):
            owners[kernel.name].append(path.name)
            assert kernel.name.startswith((path.parent.name, path.stem)), f"{path}: {kernel.name}"
    assert {name: paths for name, paths in owners.items() if len(paths) > 1} == {}


def test_what_is_registered_is_there():
    kernels = {kernel.name: kernel for path in FILES
               for kernel in metal_source.kernels_in(metal_source.without_comments(path.read_text()))}
    for name, all_arguments in front_end.registrations().items():
        assert name in kernels
        for arguments in all_arguments:
            assert len(arguments) == len(kernels[name].parameters), f"{name}<{', '.join(arguments)}>"


@pytest.mark.parametrize("path", [*FILES, *HEADERS, *PARAMETERS], ids=name_of)
def test_text_is_ascii(path):
    assert path.read_text().isascii()


def test_the_preamble_comes_first(file):
    lines = [line for line in metal_source.without_comments(file.read_text()).splitlines() if line.strip()]
    assert lines[0] == PREAMBLE.strip()


def test_the_place_of_a_thread_has_usable_names():
    macro = (metal_source.ROOT / "src/backend/gpu/kernel.metal.h").read_text().split("#define PAGODA_THREAD")[1]
    names = re.findall(r"(\w+) \[\[", macro)
    assert len(names) == 4
    uses = "".join(f"(void){name};" for name in names)
    assert front_end.errors_of(f"{PREAMBLE}[[kernel]] void f(PAGODA_THREAD) {{ {uses} }}") == ""


SPACES = r"(?:device|threadgroup|thread|constant)"
TYPES = r"(?:bool|u?char\d?|u?short\d?|u?int\d?|u?long\d?|size_t|float\d?|half\d?|bfloat\d?|void|auto|atomic_u?int|" \
        r"simdgroup_float8x8|T|[A-Z]\w*[a-z]\w*)"
POINTER = re.compile(rf"((?:\b(?:const|volatile|{SPACES})\s+)*)\b{TYPES}((?:\s+(?:const|{SPACES}))*)\s*[*&](?![*&=])\s*"
                     r"(?=[\w)>])")


def unplaced_pointers(text):
    """Pointers and references without an address space, which Metal refuses and clang takes."""
    found = []
    for match in POINTER.finditer(text):
        follows_a_value = re.search(r"[\w)\]]\s*$", text[:match.start()]) and not re.search(
            r"\b(?:inline|static|return|else)\s*$", text[:match.start()])
        if not re.search(SPACES, match[1] + match[2]) and not follows_a_value:
            found.append(match[0])
    return found


@pytest.mark.parametrize("path", [*FILES, *HEADERS], ids=name_of)
def test_pointers_say_where_they_point(path):
    assert unplaced_pointers(metal_source.without_comments(path.read_text())) == []


@pytest.mark.parametrize("snippet", ["float* x", "const int& x", "(uint4*)(at)", "inline T* at()", "auto* x = y",
                                     "f(int a, float& x)", "for (const float* x = y;"])
def test_a_pointer_to_anywhere_is_found(snippet):
    assert unplaced_pointers(snippet)


@pytest.mark.parametrize("snippet", ["device const float* x", "a * b", "sizeof(float) * n", "size_t(row) * width",
                                     "(threadgroup uint*)(shared + n)", "thread T& x", "x & 3", "N * M", "kFoo * kBar"])
def test_other_stars_are_let_be(snippet):
    assert not unplaced_pointers(snippet)


FIELD = re.compile(r"(?:int|uint|unsigned int|float) \w+(?:\[\w+\])?(?:, \w+(?:\[\w+\])?)*")


@pytest.mark.parametrize("path", PARAMETERS, ids=name_of)
def test_parameters_are_plain(path):
    """Structs of numbers of 32 bits, which five compilers lay out alike, and nothing else but enums and constants."""
    text = metal_source.without_comments(path.read_text())
    assert "#include" not in text and "#pragma" not in text
    text_as_metal = f"{PREAMBLE}#include \"{path.relative_to(metal_source.ROOT / 'src')}\"\n"
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", text, flags=re.DOTALL):
        for field in filter(None, (part.strip() for part in body.split(";"))):
            assert FIELD.fullmatch(" ".join(field.split())), f"{name}: {field}"
        text_as_metal += f"static_assert(sizeof({name}) <= 128, \"\");\n"
    assert front_end.errors_of(text_as_metal) == ""


def in_a_function(body):
    return f"""{PREAMBLE}
        struct Parameters {{ int count; float scale; }};
        inline float sum_of(device const float* x, int count);
        inline float sum_in(threadgroup const float* x, int count);
        inline void fill(thread float* x, float value) {{ x[0] = value; }}
        inline void f(device const float* in, device float* out, device atomic_uint* counter, constant Parameters& p,
                      threadgroup float* shared, uint lane) {{
          {body}
        }}"""


REFUSED = {
    "a device pointer to threadgroup memory": "device float* x = shared;",
    "a threadgroup pointer to device memory": "threadgroup float* x = out;",
    "a thread pointer to device memory": "thread float* x = out;",
    "a cast between address spaces": "device uint* x = (device uint*)(shared + 4);",
    "a cast from constant": "device const int* x = (device const int*)(&p);",
    "a device argument for a threadgroup one": "out[0] = sum_in(in, 4);",
    "a threadgroup argument for a device one": "out[0] = sum_of(shared, 4);",
    "threadgroup memory for a thread's": "fill(shared, 0.0f);",
    "a thread's array for device memory": "float x[4] = {}; out[0] = sum_of(x, 4);",
    "a write through const": "in[0] = 1.0f;",
    "const taken away": "device float* x = in;",
    "a write to parameters": "p.count = 1;",
    "a parameter that there is not": "out[0] = p.rows;",
    "a function that there is not": "out[0] = exponential(in[0]);",
    "a function of the C library": "out[0] = expf(in[0]);",
    "an argument too few": "out[0] = fma(in[0], in[1]);",
    "an argument too many": "out[0] = sum_of(in, 1, 2);",
    "a sum without its lanes' value": "out[0] = simd_sum();",
    "a shuffle of 64 bits": "ulong x = lane; x = simd_shuffle(x, 0);",
    "a double": "double x = 1.0f; out[0] = float(x);",
    "a literal that is a double": "out[0] = in[0] * 0.5;",
    "threadgroup memory of a function's own": "threadgroup float x[32]; x[lane] = 0.0f;",
    "a mixed minimum": "out[0] = min(p.scale, p.count);",
    "as_type to another size": "out[0] = as_type<float>(ushort(1));",
    "an atomic without its order": "atomic_fetch_add_explicit(counter, 1u);",
    "an atomic of plain memory": "atomic_fetch_add_explicit(out, 1.0f, memory_order_relaxed);",
    "arithmetic on an atomic": "*counter += 1;",
    "a barrier of nothing": "threadgroup_barrier();",
    "a barrier's flag that there is not": "threadgroup_barrier(mem_flags::mem_shared);",
    "a matrix of a thread's array": "float x[64] = {}; thread float* y = x; simdgroup_float8x8 m; simdgroup_load(m, y, 8);",
    "a matrix product of three": "simdgroup_float8x8 m; simdgroup_multiply_accumulate(m, m, m);",
    "a vector made of a pointer": "uint4 x = (device const uint4*)(in); out[0] = float(x.x);",
    "an element that a vector has not": "float2 x = *(device const float2*)(in); out[0] = x.z;",
    "new": "thread float* x = new float[4]; x[0] = 1.0f;",
    "an exception": "throw 1;",
    "a function pointer": "float (*g)(device const float*, int) = &sum_of; out[0] = g(in, 1);",
    "C++17's if": "if (int i = p.count; i > 0) out[0] = 1.0f;",
    "the name thread": "uint thread = lane; out[thread] = 1.0f;",
}
REFUSED_OUTSIDE = {
    "a variable of the program": "float total = 0.0f;",
    "a constant without `constant`": "const float kScale = 2.0f;",
    "a virtual function": "struct Shape { virtual int area(); };",
    "a threadgroup pointer returned as device": "inline device float* at(threadgroup float* x) { return x + 1; }",
    "a const pointer returned as one that is not": "inline device float* at(device const float* x) { return x; }",
    "a standard header": "#include <cmath>",
    "std": "inline float f(float x) { return std::exp(x); }",
}
UNUSED_IS_FINE = [*front_end.STRICT, "-Wno-unused", "-Wno-undefined-inline"]


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_a_wrong_function_is_refused(body):
    assert "error" in front_end.errors_of(in_a_function(body), UNUSED_IS_FINE)


@pytest.mark.parametrize("text", REFUSED_OUTSIDE.values(), ids=REFUSED_OUTSIDE)
def test_a_wrong_declaration_is_refused(text):
    assert "error" in front_end.errors_of(PREAMBLE + text, UNUSED_IS_FINE)


TAKEN = {
    "threadgroup memory by a cast": "threadgroup uint* x = (threadgroup uint*)(shared + 4); x[lane] = 1;",
    "16 bytes at once": "uint4 x = *(device const uint4*)(in); out[0] = as_type<float>(x.x << 16) + float(x[1]);",
    "a thread's array": "float x[4]; fill(x, 1.0f); thread float* y = x; out[0] = y[1];",
    "SIMD groups": "out[0] = simd_sum(in[lane]) + simd_shuffle_xor(in[lane], 1) + simd_broadcast(in[lane], 0);",
    "prefixes": "out[lane] = float(simd_prefix_exclusive_sum(lane)) + float(simd_max(lane));",
    "atomics": "atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);",
    "atomics of a threadgroup": "threadgroup atomic_int* x = (threadgroup atomic_int*)(shared);"
                                "atomic_store_explicit(x, 0, memory_order_relaxed);",
    "barriers": "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
                "simdgroup_barrier(mem_flags::mem_threadgroup);",
    "precise functions": "out[0] = precise::exp(in[0]) + precise::tanh(in[1]) + rsqrt(in[2]) + precise::divide(in[3], 2.0f);",
    "infinity": "out[0] = max(in[0], -INFINITY);",
    "select": "out[0] = select(in[0], in[1], p.count > 1);",
    "16-bit numbers": "device const half* x = (device const half*)(in); device const bfloat* y = (device const bfloat*)(in);"
                      "out[0] = float(x[0]) + float(y[0]); ((device bfloat*)(out))[2] = bfloat(in[0]);",
    "matrices": "simdgroup_float8x8 a, b; simdgroup_float8x8 c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);"
                "simdgroup_load(a, in, 8); simdgroup_load(b, shared, 12); simdgroup_multiply_accumulate(c, a, b, c);"
                "simdgroup_store(c, out, 8);",
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_a_right_function_is_taken(body):
    assert front_end.errors_of(in_a_function(body)) == ""


@pytest.mark.parametrize("sample", mlx_kernels.SAMPLES.values(), ids=mlx_kernels.SAMPLES)
def test_mlx_kernels_are_taken(sample, tmp_path):
    assert front_end.errors_of(mlx_kernels.text_of(sample, tmp_path), front_end.LENIENT) == ""
