#!/usr/bin/env bash
# Set up everything that the other targets need; a second run finds the stamp and does nothing.
#   scripts/setup.sh             .venv with the newest PySpark
#   SPARK=3.5 scripts/setup.sh   .venv-spark-3.5 with that line's newest release
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"

spark_lock=requirements/spark-$spark_line.lock
[ -f "$spark_lock" ] || die "SPARK=$spark_line is not a line drawstring is tested on." \
  "Choose one of: $(ls requirements/spark-*.lock | sed 's/.*spark-\(.*\)\.lock/\1/' | tr '\n' ' ')"

find_python() {
  local python
  for python in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.10; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { echo "$python"; return; }
  done
  die "Python 3.10 or newer was not found (python3 is $(python3 --version 2>&1 || echo missing))." \
    "Install it:  sudo apt-get install python3 python3-venv" "or name one:  make setup PYTHON=/path/to/python3.11"
}

need_venv_module() {
  "$1" -c 'import ensurepip, venv' 2>/dev/null && return
  local package
  package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  apt_install "$package" || apt_install python3-venv || true
  "$1" -c 'import ensurepip, venv' 2>/dev/null && return
  die "$1 cannot make virtual environments (module venv or ensurepip is missing)." \
    "Install it:  sudo apt-get install $package" "then run the same command again."
}

need_java() {
  find_java >/dev/null && return
  local package
  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    apt_install "$package" || continue
    find_java >/dev/null && return
  done
  die "no Java runtime of version 17 or newer (looked at JAVA_HOME, PATH and /usr/lib/jvm)." \
    "Install one:  sudo apt-get install openjdk-17-jre-headless" "or name one:  export JAVA_HOME=/path/to/jre"
}

digest() { cat "$@" | sha256sum | cut -d ' ' -f 1; }
is_stamped() { [ "$(cat "$venv/.stamp-$1" 2>/dev/null)" = "$2" ]; }

make_environment() {
  local python=$1
  say "making ${venv##*/} with $("$python" --version) and PySpark $spark_line (first time: a few minutes)"
  # An environment that matches another lock is made anew: pip would leave what the old lock had.
  "$python" -m venv --clear "$venv"
  pip install --use-pep517 --require-hashes --no-deps -r requirements/dev.lock -r "$spark_lock"
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

need_java
locked=$(digest requirements/dev.lock "$spark_lock")
project=$(digest pyproject.toml)
if ! is_stamped locked "$locked"; then
  python=$(find_python)
  need_venv_module "$python"
  make_environment "$python"
  echo "$locked" >"$venv/.stamp-locked"
fi
if ! is_stamped project "$project"; then
  pip install --no-deps --no-build-isolation --editable .
  echo "$project" >"$venv/.stamp-project"
  say "${venv##*/} is ready"
fi
