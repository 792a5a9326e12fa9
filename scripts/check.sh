#!/usr/bin/env bash
# What a change must pass beside the tests. Every check runs, so that one run shows all there is to mend.
set -uo pipefail
failed=()
check() {
  local name=$1
  shift
  if output=$("$@" 2>&1); then printf '  ok    %s\n' "$name"; else
    printf '  FAIL  %s\n%s\n' "$name" "$output"
    failed+=("$name")
  fi
}

check "ruff check" ruff check .
check "ruff format" ruff format --check .
check "mypy strict" mypy
check "import layers" lint-imports
check "generated pages" python scripts/generate_docs.py --check
[ ${#failed[@]} = 0 ] || { echo "make check: ${#failed[@]} failed: ${failed[*]}"; exit 1; }
echo "make check: all passed"
