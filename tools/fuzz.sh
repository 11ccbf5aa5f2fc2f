#!/usr/bin/env bash
# Runs fuzz targets for some seconds each: tools/fuzz.sh [SECONDS, 60] [address|thread] [TARGET...]. A target is
# tests/fuzz/NAME_fuzz.cc, all of them where none is named; it starts from the inputs in tests/fuzz/corpus/NAME_fuzz. What it
# finds on its way goes to build/fuzz/corpus (under the thread sanitizer build/fuzz-tsan), its crashes to build/fuzz/crashes.
# An input that takes over 10 s, or a process of over 1,500 MB, counts as a crash. The last lines sum up each target.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
sanitizer=${2:-address}
case $sanitizer in
  address) preset=fuzz ;;
  thread) preset=fuzz-tsan ;;
  *) echo "fuzz: expected address or thread, got $sanitizer" >&2; exit 1 ;;
esac
build=build/$preset
targets=("${@:3}")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" .cc)"); done
fi
for target in "${targets[@]}"; do
  [ -e "tests/fuzz/$target.cc" ] || { echo "fuzz: expected a target in tests/fuzz, got $target" >&2; exit 1; }
done

[ -e $build/build.ninja ] || cmake --preset $preset
cmake --build --preset $preset --target "${targets[@]}"

# One target, a core; what it says comes in one piece.
run_target() {
  local target=$1 kept=tests/fuzz/corpus/$1
  [ -d "$kept" ] || { echo "fuzz: $target has no corpus in $kept" >&2; exit 1; }
  mkdir -p "$build/corpus/$target" "$build/crashes"
  local log=$build/$target.log status=0
  timeout --kill-after=10 $((seconds + 120)) "$build/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1500 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/crashes/$target-" "$build/corpus/$target" "$kept" \
    >"$log" 2>&1 || status=$?
  echo "$status" >"$build/$target.status"
  printf -- '--- %s, %s s\n%s\n' "$target" "$seconds" "$(sed '/recommended dictionary/d; /" # Uses: /d' "$log")"
  return $status
}
# A figure that libFuzzer prints at its end.
figure() {
  local value
  value=$(sed -n "s/^stat::$2: *//p" "$build/$1.log")
  echo "${value:-?}"
}
export -f run_target
export build seconds
# What is not safe in signals is libFuzzer's own timer.
export TSAN_OPTIONS="halt_on_error=1 report_signal_unsafe=0"
result=0
printf '%s\n' "${targets[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} bash -euo pipefail -c 'run_target {}' || result=1
echo "=== $sanitizer sanitizer, $seconds s a target"
for target in "${targets[@]}"; do
  status=$(cat "$build/$target.status")
  [ "$status" = 0 ] && status=ok || status="FAILED ($status)"
  printf '%-18s %12s runs, peak %5s MB, slowest input %3s s: %s\n' "$target" "$(figure "$target" number_of_executed_units)" \
    "$(figure "$target" peak_rss_mb)" "$(figure "$target" slowest_unit_time_sec)" "$status"
done
exit $result
