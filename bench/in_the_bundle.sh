#!/usr/bin/env bash
# run [THREADS]: Pagoda on this machine, from the bundle that tools/bundle.sh makes: what the machine is and its limits, the ops'
# cases and products on each instruction set that it has, then turns beside llama.cpp and OpenVINO on THREADS threads (all
# processors) and, for Q4_0, on one. It writes into this folder alone, takes up to 9 minutes on 16 processors, and 3 GB.
set -uo pipefail
cd "$(dirname "$0")"

threads=${1:-$(getconf _NPROCESSORS_ONLN)}
pagoda=pagoda/bin/pagoda
libraries=pagoda/lib/pagoda/lib
failed=0
part() {
  printf '\n=== %s\n' "$1"
  shift
  "$@" || { echo "failed: exit $?"; failed=1; }
}

part "machine" $pagoda info
part "limits" $pagoda bench machine
part "ops" env LD_LIBRARY_PATH=$libraries:$libraries/mlx/lib:$libraries/mlx_cpu.libs pagoda/lib/pagoda/pagoda_ops_test --gtest_brief=1 \
  --gtest_filter='*Isa*:Linear*:Ops.EveryBackend*'
for count in "$threads" 1; do
  only="0.6B shape"
  [ "$count" = 1 ] && only="0.6B shape Q4_0"
  part "llama.cpp, $count threads" python3 bench/vs_llama_cpp.py $pagoda --turns 1 --threads "$count" --only "$only" --folder peers
  part "OpenVINO, $count threads" python3 bench/vs_openvino.py $pagoda --turns 1 --threads "$count" --only "$only" --folder peers
done
exit $failed
