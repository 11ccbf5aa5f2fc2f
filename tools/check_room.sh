#!/usr/bin/env bash
# Builds a room's tests by a preset and runs those that are quick: tools/check_room.sh edit server. A third argument has the C++
# tests run only the cases with that word in their names, whatever the case of its first letter.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1 room=$2 only=${3:-}
rooms=$(ninja -C "build/$preset" -t targets all | sed -n 's/^room_\([a-z_]*\): phony$/\1/p' | sort | tr '\n' ' ')
[ -n "$room" ] && grep -qwF -- "$room" <<<"$rooms" || { echo "check: expected a room of ${rooms% }, got '$room'" >&2; exit 2; }

cmake --build --preset "$preset" --target "room_$room"
[ -z "$only" ] || export GTEST_FILTER="*?${only#?}*"
ctest --preset "$preset" --label-regex "^room:$room\$" --label-exclude '^slow$'
slow=$(ctest --preset "$preset" -N --label-regex "^room:$room\$" --label-regex '^slow$' | sed -n 's/^ *Test *#[0-9]*: //p')
[ -z "$slow" ] || echo "check: left to \`make test\`, because they are slow:" $slow
