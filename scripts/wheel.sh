#!/usr/bin/env bash
# Build the wheel with a bridge jar for every Spark line that has an environment here (make setup SPARK=…).
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
rm -rf build/jars dist
for environment in .venv .venv-spark-*; do
  [ -x "$environment/bin/python" ] || continue
  DRAWSTRING_CACHE=build/jars "$environment/bin/python" -m drawstring.spark.session.build
done
python -m build --wheel --no-isolation
