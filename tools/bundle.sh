#!/usr/bin/env bash
# Makes build/pagoda-bundle.tar.xz: what a bare Linux machine of this architecture needs to hold Pagoda's kernels to the reference
# and to time it beside llama.cpp and OpenVINO, without a network. There:
#   tar -xJf pagoda-bundle.tar.xz && pagoda-bundle/run [THREADS]
#
# llama.cpp comes as source, because it is built for the machine that it runs on; OpenVINO for the version of Python named, and
# without what other devices and other files than GGUF need. That machine needs numpy, cmake and a C++ compiler.
#   tools/bundle.sh [PYTHON, 3.12]
set -euo pipefail
cd "$(dirname "$0")/.."

bundle=build/pagoda-bundle
rm -rf "$bundle" "$bundle.tar.xz"
mkdir -p "$bundle/bench" "$bundle/peers"

for component in program libraries; do
  cmake --install build/release --component $component --strip --prefix "$bundle/pagoda" >/dev/null
done
strip -o "$bundle/pagoda/lib/pagoda/pagoda_ops_test" build/release/src/ops/pagoda_ops_test
cp bench/*.py "$bundle/bench"
cp bench/in_the_bundle.sh "$bundle/run"

fetched=$(.venv/bin/python bench/fetch_peers.py "${1:-3.12}")
{ read -r folder; read -r packages; } <<<"$fetched"
left_out=()
for backend in cann cuda et hexagon hip metal musa opencl openvino rpc sycl virtgpu vulkan webgpu zdnn zendnn; do
  left_out+=("--exclude=ggml-$backend")
done
for part in benches conversion docs examples gguf-py media models scripts tests '.git*'; do left_out+=("--exclude=llama.cpp/$part"); done
tar -C "$folder" -c "${left_out[@]}" "$(cd "$folder" && echo llama_cpp_python-*/vendor/llama.cpp)" | tar -C "$bundle/peers" -x
cp -r "$packages" "$bundle/peers"
(cd "$bundle/peers/openvino" && rm -rf openvino/{include,cmake,tools,frontend/*/} openvino_genai/include &&
  find . -name '__pycache__' -prune -exec rm -rf {} + &&
  rm -f openvino/libs/{*_gpu_*,*_npu_*,*onnx*,*tensorflow*,*pytorch*,*paddle*,cache.json})

tar -C build -c pagoda-bundle | xz -T0 -9 >"$bundle.tar.xz"
printf '%s: %d MB\n' "$bundle.tar.xz" $(($(stat -c %s "$bundle.tar.xz") / 1000000))
