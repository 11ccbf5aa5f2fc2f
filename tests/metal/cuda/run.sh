#!/usr/bin/env bash
# Our Metal kernels on a CUDA GPU: nvcc compiles them by way of the shim of src/backend/cuda/shim, and the ops' own
# bodies launch them. No Apple GPU is like it: what holds there is the code's logic, not its speed.
#
#   tests/metal/cuda/run.sh prepare       builds the harness and writes the kernels as CUDA; needs no CUDA
#   tests/metal/cuda/run.sh check [OP]    every small case of every op against the reference
#   tests/metal/cuda/run.sh sanitize [TOOL...]   every kernel under compute-sanitizer
#   tests/metal/cuda/run.sh figures [TEXT]   times, beside the GPU's limits; of figures whose names have TEXT
#
# All goes to build/metal_on_cuda, which can be carried to a machine that has a GPU and the tree.
set -euo pipefail
cd "$(dirname "$0")/../../.."
export PATH=$PATH:/usr/local/cuda/bin
folder=build/metal_on_cuda
harness=$folder/metal_on_cuda
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python

prepare() {
  [ -f build/release/build.ninja ] || cmake --preset release
  cmake --build --preset release --target pagoda_metal_on_cuda
  mkdir -p "$folder/lib"
  strip -o "$harness" build/release/tests/metal/cuda/pagoda_metal_on_cuda
  # What another machine may lack; the C and C++ runtimes it has.
  ldd "$harness" | awk '$3 ~ /^\// {print $3}' | grep -vE '/lib(c|m|dl|gcc_s|pthread|rt|stdc\+\+)\.so' |
    xargs -r cp -Lt "$folder/lib"
  "$harness" list "$folder/kernels.txt"
  "$python" tests/metal/cuda/make_cuda.py "$folder/kernels.txt" "$folder"
}

# -fmad=false: only fma fuses. -ftz=true: as Apple's GPUs, which know no subnormal numbers.
compile() {
  find "$folder" -name '*.cu' | while read -r file; do
    [ "${file%.cu}.cubin" -nt "$file" ] || echo "$file"
  done | xargs -r -P "$(nproc)" -I FILE bash -c '
    nvcc -std=c++17 -O3 -arch="${PAGODA_CUDA_ARCH:-native}" -cubin -lineinfo -w --expt-relaxed-constexpr \
      -fmad=false -ftz=true -prec-div=true -prec-sqrt=true -Isrc/backend/cuda/shim "$1" -o "$1.tmp" &&
      mv "$1.tmp" "${1%.cu}.cubin"' _ FILE
}

mode=${1:-check}
shift || true
[ -f "$folder/kernels.table" ] && [ "$mode" != prepare ] || prepare
[ "$mode" = prepare ] && exit
export LD_LIBRARY_PATH=$PWD/$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
compile
case $mode in
  check) "$harness" check "$folder" "$@" ;;
  figures) "$harness" figures "$folder" "$@" ;;
  sanitize)
    [ $# -gt 0 ] || set -- memcheck racecheck initcheck synccheck
    for tool; do
      echo "$tool"
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$harness" kernels "$folder"
    done
    ;;
  *) sed -n '2,11p' "$0" && exit 2 ;;
esac
