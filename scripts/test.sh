#!/usr/bin/env bash
# The whole suite, as two runs: what needs no Spark on all cores, then the Spark tests in processes with a session each
# (SPARK_PROCESSES, 2 unless told: a session takes gigabytes). The last line has both summaries.
#   scripts/test.sh PATH… [pytest's options]
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
colour=$([ -t 1 ] && echo yes || echo no)
codes=()
summaries=()
suite() {
  local name=$1 marks=$2
  shift 2
  scripts/run python -m pytest --color="$colour" --dist worksteal \
    -m "($marks) and not interop and not torture" "$@" 2>&1 | tee "$log"
  codes+=("${PIPESTATUS[0]}")
  summaries+=("$name: $(tail -n 1 "$log")")
}
suite "without Spark" "not spark and not cluster" -n auto "$@"
suite "through Spark" "spark or cluster" -n "${SPARK_PROCESSES:-2}" "$@"
echo "${summaries[0]} | ${summaries[1]}"
# 5 is pytest's "nothing was selected": a narrowed run may lie in one half alone.
case "${codes[*]}" in
  "0 0" | "0 5" | "5 0") exit 0 ;;
  *) exit 1 ;;
esac
