"""MLX's own kernels, which Apple's compiler takes: what of them the front end takes, and what is rewritten for it first.

MLX's wheel for Macs has them as headers, without the files that instantiate them.
"""

import os
import pathlib
import re
from typing import NamedTuple

import front_end

KERNELS = "mlx/backend/metal/kernels"
# What our front end has no types for stays out: complex numbers, bfloat's own functions, the log.
LEFT_OUT = {
    f"{KERNELS}/bf16_math.h": "",
    f"{KERNELS}/logging.h": "",
    f"{KERNELS}/complex.h": """
        template <typename T>
        struct complex_t {
          T real;
          T imag;
          constexpr complex_t(T real, T imag) : real(real), imag(imag) {}
          constexpr complex_t(T real, T imag) constant : real(real), imag(imag) {}
        };
        typedef complex_t<float> complex64_t;""",
    "metal_math": "",
    "metal_simdgroup": "",
}
REWRITTEN = (
    # Constants of a pipeline have no value here.
    (r"\[\[function_constant\(\w+\)\]\]\s*;", "= 1;"),
    # Memory of a threadgroup is a kernel's own in OpenCL, and no template is a kernel there.
    (r"(?<=[;{}])(\s*)__local ((?:typename )?[\w:]+(?:<[^;<>]*>)?)\s+(\w+)((?:\s*\[[^;]*\])*);",
     r"\1__local \2 (&\3)\4 = *(__local \2 (*)\4)0;"),
    # `constant` is const already to Metal.
    (r"(?<!const )__constant (\w+\s*&)", r"const __constant \1"),
    # No pointer and class meet in clang's `+=`.
    (r"src \+= str_y", "src += int(str_y)"),
)


class Sample(NamedTuple):
    """Headers, and instantiations of their kernels."""
    headers: tuple
    kernels: tuple  # "name<arguments>"
    thread_is_anywhere: bool = False  # classes with members of their thread, which clang takes to be anywhere


GEMM = ("utils.h", "steel/gemm/gemm.h")
SAMPLES = {
    "sdpa_vector": Sample(
        ("utils.h", "sdpa_vector.h"),
        ("sdpa_vector<bfloat16_t, 128, 128>", "sdpa_vector<float, 64, 64>", "sdpa_vector_2pass_1<float, 64, 64>",
         "sdpa_vector_2pass_1_gqa<half, 64, 64, 8, 8>", "sdpa_vector_2pass_2<half, 64>")),
    "softmax": Sample(("utils.h", "softmax.h"), ("softmax_single_row<float>", "softmax_looped<half, float>")),
    "logsumexp": Sample(("utils.h", "logsumexp.h"), ("logsumexp<float>", "logsumexp_looped<half>")),
    "gemv": Sample(
        ("gemv.h",),
        ("gemv<float, 1, 8, 1, 32, 4, 4, 0, 0>", "gemv<bfloat16_t, 4, 1, 1, 32, 4, 4, 1, 1>",
         "gemv_t<half, 1, 2, 8, 4, 4, 1, 0, 0>")),
    "quantized": Sample(
        (*GEMM, "quantized_utils.h", "quantized.h"),
        ("affine_qmv_fast<float, 64, 4, 0>", "affine_qmv<bfloat16_t, 64, 4, 0>",
         "affine_qmv_quad<bfloat16_t, 64, 4, 64, 0>", "affine_qmv_wide<bfloat16_t, 64, 4, 2, 8, 0>",
         "affine_qvm<half, 64, 8, 1>", "affine_qvm_split_k<half, 64, 8, 8>", "affine_qmm_n<half, 32, 3, 1>",
         "affine_qmm_t<bfloat16_t, 64, 4, true, 0>", "affine_qmm_t_splitk<bfloat16_t, 64, 4, true>",
         "affine_gather_qmv<bfloat16_t, 64, 4>", "affine_gather_qmm_t<bfloat16_t, 64, 4, true>",
         "affine_quantize<float, 64, 4>", "affine_dequantize<float, 64, 4>"),
        thread_is_anywhere=True),
    "steel_gemm": Sample(
        (*GEMM, "steel/gemm/kernels/steel_gemm_fused.h"),
        ("gemm<half, 64, 64, 16, 2, 2, false, true, float>", "gemm<bfloat16_t, 64, 64, 16, 2, 2, false, true, float>",
         "gemm<float, 64, 64, 16, 2, 2, true, true, float>"),
        thread_is_anywhere=True),
    "steel_gemm_splitk": Sample(
        (*GEMM, "steel/gemm/kernels/steel_gemm_splitk.h"),
        ("gemm_splitk<half, float, 32, 32, 16, 2, 2, false, true, false, true>",),
        thread_is_anywhere=True),
    "steel_attention": Sample(
        ("utils.h", "steel/attn/kernels/steel_attention.h"),
        ("attention<bfloat16_t, 32, 16, 128, 128, 4, 1, bfloat16_t, float>",
         "attention<half, 32, 32, 64, 64, 4, 1, half, float>"),
        thread_is_anywhere=True),
}


def include_folder():
    """The folder of the headers: of the wheel mlx-metal, `mlx/include`."""
    folder = os.environ.get("PAGODA_MLX_METAL_INCLUDE")
    assert folder and pathlib.Path(folder, KERNELS).is_dir(), "PAGODA_MLX_METAL_INCLUDE is not MLX's headers of Metal"
    return pathlib.Path(folder)


def text_of(sample, folder):
    """The sample as one text for the front end; `folder`, an empty one, gets what takes the place of LEFT_OUT."""
    for path, text in LEFT_OUT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    defines = ["-DMLX_METAL_JIT", "-D__METAL_VERSION__=320"]
    if sample.thread_is_anywhere:
        defines.append("-DPAGODA_THREAD_IS_ANYWHERE")
    headers = ["mlx_dialect", *(f"{KERNELS}/{header}" for header in sample.headers)]
    text = front_end.preprocessed("".join(f'#include "{header}"\n' for header in headers), defines,
                                  [folder, include_folder()])
    for pattern, replacement in REWRITTEN:
        text = re.sub(pattern, replacement, text)
    return text + "".join(f"template decltype({kernel}) {kernel};\n" for kernel in sample.kernels)
