"""clang's C++ for OpenCL as a second reader of Metal's language: what its address spaces and types do not allow is an error."""

import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess

import metal_source

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
# Doubles are not there, as in Metal; of C++, what C++14 has. Attributes are Metal's.
EXTENSIONS = "-cl-ext=-all,+cl_khr_fp16,+__opencl_c_generic_address_space"
LANGUAGE = ["-x", "clcpp", "-cl-std=clc++2021", "--target=spir64", "-cl-no-stdinc", "-Xclang", EXTENSIONS]
STRICT = ["-Wall", "-Wextra", "-Wc++98-c++11-c++14-compat", "-Werror", "-Wno-unknown-attributes",
          "-Wno-ignored-attributes", "-Wno-unknown-pragmas", "-Wno-unused-parameter", "-Wno-unused-function"]
# MLX's files are taken as they are: no warnings.
LENIENT = ["-Wno-everything"]


@functools.cache
def clang():
    """The compiler that CMake found, clang++ where the tests run without it: C++ for OpenCL 2021 is clang's from 14 on."""
    path = os.environ.get("PAGODA_CLANG") or shutil.which("clang++")
    assert path, "clang++ is not there: tools/setup.sh test installs it"
    return path


def include_flags(*folders):
    return [f"-I{folder}" for folder in [*folders, FOLDER, ROOT / "src", ROOT]]


def errors_of(text, flags=STRICT, includes=()):
    """What the front end has against a text: "" where it takes it."""
    return subprocess.run([clang(), *LANGUAGE, *flags, *include_flags(*includes), "-fsyntax-only", "-"],
                          input=text, capture_output=True, text=True, check=False).stderr


def instantiation(name, arguments):
    """As gpu_launch.h has it, less the attributes that Metal takes there."""
    function = f"{name}<{', '.join(arguments)}>"
    return f"template decltype({function}) {function};\n"


@functools.cache
def registrations():
    """Kernel -> the template arguments that the emulator's tests compile it for: [["bfloat", "128"], ...]."""
    found = collections.defaultdict(list)
    for path in sorted((ROOT / "tests/metal/kernels").glob("*_kernels.cc")):
        text = re.sub(r"^#include.*", "", path.read_text(), flags=re.MULTILINE)
        flags = ["-x", "c++", "-E", "-P", "-DPAGODA_REGISTER_KERNEL(...)=REGISTERED(__VA_ARGS__)", "-"]
        lines = subprocess.run([clang(), *flags], input=text, capture_output=True, text=True, check=True).stdout
        for registered in re.findall(r"REGISTERED\(([^()]*)\)", lines):
            name, *arguments = metal_source.split_outside(registered)
            found[name].append(arguments)
    return found


def preprocessed(text, defines, includes):
    return subprocess.run([clang(), *LANGUAGE, *defines, *include_flags(*includes), "-E", "-P", "-"],
                          input=text, capture_output=True, text=True, check=True).stdout
