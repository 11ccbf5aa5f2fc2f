#!/usr/bin/env python3
"""Writes .metal files as CUDA: one .cu file for every few kernels of a list, and the table that says which has which.

  tests/metal/cuda/make_cuda.py kernels.txt build/metal_on_cuda

A line of the list is a launch that the harness asks for: a file's stem, a kernel, its template's arguments between commas
(or "-"), the most threads of a threadgroup. Kernels become functions of the device; the file's end has a __global__ function
for each line, with the name that GpuFunction::binary_name() gives it. A line of the table: binary, file's stem, number of
buffers.
"""

import collections
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import metal_source  # noqa: E402

FOLDERS = (metal_source.ROOT / "src", metal_source.ROOT)  # of headers
KERNELS_PER_FILE = 6  # nvcc takes a second for one: files are compiled side by side
INCLUDE = re.compile(r'^#include "([^"]*)"\n', re.MULTILINE)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]")
PLACE = "blockIdx, threadIdx.x, threadIdx.x / 32, threadIdx.x % 32"


def expanded(path, seen):
    """The file's text without comments, with files of ours that it includes in place, each once."""
    def include(match):
        if match[1] in seen:
            return ""
        seen.add(match[1])
        path = next(folder / match[1] for folder in FOLDERS if (folder / match[1]).exists())
        return expanded(path, seen)
    return INCLUDE.sub(include, metal_source.without_comments(path.read_text()))


def place_of_a_thread(text):
    """The arguments that PAGODA_THREAD stands for: "uint3 group, uint lane"."""
    macro = re.search(r"#define PAGODA_THREAD((?:.*\\\n)*.*)\n", text)[1]
    return ATTRIBUTE.sub("", macro.replace("\\\n", " "))


def with_constants(text):
    """Constants of a file: arrays in constant memory, numbers for the compiler."""
    def declare(match):
        return ("__constant__ const " if "[" in match[2] else "constexpr ") + match[2] + "="
    return re.sub(r"^(?:static )?constant ((?:constexpr |const )*)([^;={()]*)=", declare, text, flags=re.MULTILINE)


def as_device_functions(text):
    """The text with its kernels as functions of the device."""
    place = place_of_a_thread(text)
    parts, end = [], 0
    for kernel in metal_source.kernels_in(text):
        template = f"template <{', '.join(kernel.parameters)}> " if kernel.is_template else ""
        arguments = [place if argument == "PAGODA_THREAD" else ATTRIBUTE.sub("", argument) for argument in kernel.arguments]
        parts += [text[end:kernel.start], f"{template}inline void {kernel.name}({', '.join(arguments)}"]
        end = kernel.end
    return without_address_spaces(with_constants("".join([*parts, text[end:]])))


def without_address_spaces(text):
    return re.sub(r"\bconstant\b", "const", re.sub(r"\b(?:device|threadgroup|thread)\b ?", "", text))


def binary_name(name, arguments):
    return "_".join([name, *arguments])


def num_buffers(kernel):
    return sum("buffer(" in argument for argument in kernel.arguments) - 1  # the parameters are in one


def entry(kernel, arguments, num_threads):
    """The __global__ function of a kernel for these arguments of its template."""
    kinds = dict(zip((parameter.split()[-1] for parameter in kernel.parameters), arguments, strict=True))
    declared, passed, memory = [], [], ""
    for argument in kernel.arguments[:-1]:
        plain = ATTRIBUTE.sub("", argument).strip()
        name = re.search(r"\w+$", plain)[0]
        if plain.startswith("threadgroup "):
            memory = f"  extern __shared__ __align__(16) float {name}[];\n"
        else:
            plain = without_address_spaces(plain.replace("&", ""))  # the parameters come by value
            declared.append(re.sub(r"\w+", lambda word: kinds.get(word[0], word[0]), plain))
        passed.append(name)
    call = f"{kernel.name}<{', '.join(arguments)}>" if arguments else kernel.name
    return (f'extern "C" __global__ void __launch_bounds__({num_threads})\n'
            f"{binary_name(kernel.name, arguments)}({', '.join(declared)}) {{\n{memory}"
            f"  {call}({', '.join(passed)}, {PLACE});\n}}\n")


def read_list(path):
    """(file's stem, kernel, arguments) -> the most threads."""
    threads = collections.defaultdict(int)
    for line in pathlib.Path(path).read_text().splitlines():
        stem, name, arguments, num_threads = line.split()
        key = (stem, name, () if arguments == "-" else tuple(arguments.split(",")))
        threads[key] = max(threads[key], int(num_threads))
    return threads


def main():
    list_path, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.cu"):
        old.unlink()
    files = {path.stem: path for path in [*metal_source.metal_files(), *sorted(HERE.glob("*.metal"))]}
    asked = collections.defaultdict(list)
    for (stem, name, arguments), num_threads in sorted(read_list(list_path).items()):
        asked[stem].append((name, arguments, num_threads))
    table = []
    for stem, lines in asked.items():
        text = expanded(files[stem], set())
        kernels = {kernel.name: kernel for kernel in metal_source.kernels_in(text)}
        functions = as_device_functions(text)
        for begin in range(0, len(lines), KERNELS_PER_FILE):
            unit = f"{stem}_{begin // KERNELS_PER_FILE}"
            few = lines[begin:begin + KERNELS_PER_FILE]
            entries = [entry(kernels[name], arguments, num_threads) for name, arguments, num_threads in few]
            (folder / f"{unit}.cu").write_text("\n".join([functions, *entries]))
            table += [f"{binary_name(name, arguments)} {unit} {num_buffers(kernels[name])}\n" for name, arguments, _ in few]
    (folder / "kernels.table").write_text("".join(table))


if __name__ == "__main__":
    main()
