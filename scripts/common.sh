# Sourced by the other scripts: where Java is, which environment to use, how to say what is missing.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
spark_line=${SPARK:-4.3}
if [ "$spark_line" = 4.3 ]; then venv=$root/.venv; else venv=$root/.venv-spark-$spark_line; fi

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
  printf 'drawstring set-up: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# apt_install PACKAGE...: install as root, true on success; false when that is not possible here.
apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  say "apt-get install $*"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get install -y --no-install-recommends "$@" ||
    { apt-get update && apt-get install -y --no-install-recommends "$@"; }; } >&2
}

java_major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }

# find_java: print the home of a Java 17+ runtime; JAVA_HOME first, then PATH, then the distribution's folder.
find_java() {
  local java
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
    /usr/lib/jvm/*17*/bin/java /usr/lib/jvm/*21*/bin/java /usr/lib/jvm/default-java/bin/java; do
    [ -n "$java" ] && [ -x "$java" ] || continue
    if [ "$(java_major "$java")" -ge 17 ] 2>/dev/null; then
      dirname "$(dirname "$(readlink -f "$java")")"
      return
    fi
  done
  return 1
}
