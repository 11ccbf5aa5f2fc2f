#!/usr/bin/env bash
# Runs every fuzz target for some seconds: tools/fuzz.sh [SECONDS, 60]. A target is tests/fuzz/NAME_fuzz.cc; it starts from
# the inputs in tests/fuzz/corpus/NAME_fuzz, and what it finds on its way goes to build/fuzz/corpus, its crashes to
# build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
build=build/fuzz
targets=()
for source in tests/fuzz/*_fuzz.cc; do
  [ -e "$source" ] || { echo "fuzz: expected targets in tests/fuzz, found none" >&2; exit 1; }
  targets+=("$(basename "$source" .cc)")
done

[ -e $build/build.ninja ] || cmake --preset fuzz
cmake --build --preset fuzz --target "${targets[@]}"

# One target, a core; what it says comes in one piece.
run_target() {
  local target=$1 kept=tests/fuzz/corpus/$1
  [ -d "$kept" ] || { echo "fuzz: $target has no corpus in $kept" >&2; exit 1; }
  mkdir -p "$build/corpus/$target" "$build/crashes"
  local log=$build/$target.log status=0
  "$(find $build -type f -name "$target" -perm -u+x)" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/crashes/$target-" "$build/corpus/$target" "$kept" \
    >"$log" 2>&1 || status=$?
  printf -- '--- %s, %s s\n%s\n' "$target" "$seconds" "$(sed '/recommended dictionary/d; /" # Uses: /d' "$log")"
  return $status
}
export -f run_target
export build seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -euo pipefail -c 'run_target {}'
