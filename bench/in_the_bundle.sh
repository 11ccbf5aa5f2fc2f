#!/usr/bin/env bash
# run [THREADS]: Pagoda on this machine, from the bundle that tools/bundle.sh makes: what the machine is and its limits, the ops'
# cases and products on each instruction set that it has, then turns beside llama.cpp and OpenVINO on THREADS threads (all
# processors) and, for Q4_0, on one. It writes into this folder alone, 3 GB.
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
turns() {  # THREADS, and what the workloads' names contain
  for peer in llama_cpp openvino; do
    part "$peer, $1 threads" python3 bench/vs_$peer.py $pagoda --turns 1 --threads "$1" --only "$2" --folder peers
  done
}
turns "$threads" "0.6B shape"
[ "$threads" = 1 ] || turns 1 "0.6B shape Q4_0"
exit $failed
