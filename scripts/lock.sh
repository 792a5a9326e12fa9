#!/usr/bin/env bash
# Rewrite requirements/*.lock from pyproject.toml (with its dev group) and requirements/spark-*.in. Needs `uv` on PATH; nobody else does.
set -euo pipefail
cd "$(dirname "$0")/.."

# The locks pin versions and hashes and name no registry: pip takes files from wherever it is configured to.
lock() {
  uv pip compile --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --quiet "$@"
}

lock pyproject.toml --group dev --no-emit-package pyspark --no-emit-package py4j -o requirements/dev.lock
for line in 3.5 4.0 4.1 4.2 4.3; do
  lock "requirements/spark-$line.in" -o "requirements/spark-$line.lock"
done
