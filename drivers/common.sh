# What the `install` and `run` of each driver share; sourced, never run.
# shellcheck shell=bash

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

here=$(cd "$(dirname "$0")" && pwd)
# The driver is named after its folder.
name=$(basename "$here")
# All that is installed without the system's package manager.
made=$root/target/drivers

# How `run` says that what it needs is not installed: the reason as the last line, and this status.
not_installed=77

# missing REASON
missing() {
  printf '%s\n' "$*"
  exit $not_installed
}

# need_packages [PACKAGE…]: the Debian packages that the file `packages` beside the script names, and these. Those that are
# there already are left alone.
need_packages() {
  local package absent=()
  for package in $(cat "$here/packages" 2>/dev/null) "$@"; do
    is_installed "$package" || absent+=("$package")
  done
  [ ${#absent[@]} = 0 ] || install_packages "${absent[@]}"
}

# --- Python: one environment for all drivers ---

python=$made/python/bin/python

# need_pip REQUIREMENT…, each with its exact version.
need_pip() {
  have python3 || need_packages python3
  python3 -c 'import ensurepip' >/dev/null 2>&1 || need_packages python3-venv
  mkdir -p "$made"
  # The interpreter that it was made with may be gone.
  "$python" -c '' >/dev/null 2>&1 || python3 -m venv --clear "$made/python"
  "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$@"
}

# run_python MODULE FILE: what the module is needed for.
run_python() {
  "$python" -c "import $1" >/dev/null 2>&1 || missing "no Python with $1"
  exec "$python" "$2"
}

# --- Node.js: one folder of modules a driver ---

# need_npm: what package.json and package-lock.json in the driver's folder name; nothing is fetched a second time.
need_npm() {
  have node || need_packages nodejs
  have npm || need_packages npm
  local modules=$made/node/$name
  mkdir -p "$modules"
  cmp -s "$here/package-lock.json" "$modules/installed.json" && return
  cp "$here/package.json" "$here/package-lock.json" "$modules/"
  (cd "$modules" && npm ci --silent --ignore-scripts --no-audit --no-fund)
  cp "$modules/package-lock.json" "$modules/installed.json"
}

# run_node FILE. Node.js takes further certificate authorities from a variable of its own.
run_node() {
  local modules=$made/node/$name
  have node || missing "no Node.js"
  [ -e "$modules/installed.json" ] || missing "its modules are not installed"
  # Modules are looked for beside the file, so it goes where they are.
  cp "$1" "$modules/"
  export NODE_EXTRA_CA_CERTS=${PGSSLROOTCERT:-}
  exec node "$modules/$(basename "$1")"
}

# --- Go: Debian's sources of the drivers, without the network ---

# build_go: the program of the driver's folder; nothing if it is newer than its source.
build_go() {
  local program=$made/go/$name
  [ "$program" -nt "$here/work.go" ] && return
  mkdir -p "$made/go"
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$made/go/cache GOFLAGS= go build -o "$program" "$here/work.go"
}

# run_go PACKAGE: the folder of the driver's source.
run_go() {
  have go || missing "no Go"
  [ -d "/usr/share/gocode/src/$1" ] || missing "no Go package $1"
  build_go
  exec "$made/go/$name"
}

# --- Rust: a crate outside the workspace, with its own lock ---

# build_rust: the program of the driver's folder.
build_rust() {
  cargo build --quiet --locked --manifest-path "$here/Cargo.toml" --target-dir "$made/rust"
}

run_rust() {
  local program=$made/rust/debug/driver-$name
  # The source may be newer than what was installed.
  have cargo || missing "no Rust"
  [ -e "$program" ] || missing "it is not built"
  build_rust
  exec "$program"
}
