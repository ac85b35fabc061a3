# Shared by scripts/up and scripts/test; sourced, never run.
# shellcheck shell=bash

name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s: %s\n' "$name" "$*"; }

# The last line that is seen when something is missing or wrong.
fail() {
  printf '%s: FAILED: %s\n' "$name" "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    fail "root is needed (and there is no sudo) for: $*"
  fi
}

apt_updated=no

# Installs Debian packages.
install_packages() {
  have apt-get || fail "no apt-get on this system: install by hand what corresponds to: $*"
  if [ $apt_updated = no ]; then
    say "apt-get update"
    as_root apt-get update -qq || fail "apt-get update failed"
    apt_updated=yes
  fi
  say "apt-get install $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    fail "apt-get could not install: $*"
}

# is_installed PACKAGE: as a Debian package.
is_installed() {
  # shellcheck disable=SC2016
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]
}

# A folder with the programs of a PostgreSQL server, the newest there is; nothing if there is none.
find_postgres() {
  local folder
  for folder in "${PG_BIN:-}" $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) \
    "$(dirname "$(readlink -f "$(command -v postgres || true)")" 2>/dev/null || true)"; do
    if [ -n "$folder" ] && [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ]; then
      printf '%s\n' "$folder"
      return
    fi
  done
}

# Installs a PostgreSQL server without letting Debian make and start a cluster `main` of its own.
install_postgres() {
  local conf=/etc/postgresql-common/createcluster.conf
  [ -e "$conf" ] || install_packages postgresql-common
  as_root cp -p "$conf" "$conf.before-holdfast"
  as_root sed -i '/^[[:space:]]*create_main_cluster/d' "$conf"
  printf 'create_main_cluster = false\n' | as_root tee -a "$conf" >/dev/null
  # The machine's own setting is put back even if the installation fails.
  (install_packages postgresql) || true
  as_root mv "$conf.before-holdfast" "$conf"
}

# What a build needs: the toolchain (not installed by us), a linker and C headers.
need_toolchain() {
  have cargo || fail "cargo is missing: install Rust from https://rustup.rs, then run this again"
  have cc || install_packages gcc libc6-dev
}

# Sets $pg_bin.
need_postgres() {
  pg_bin=$(find_postgres)
  if [ -z "$pg_bin" ]; then
    say "no PostgreSQL server found: installing one"
    install_postgres
    pg_bin=$(find_postgres)
  fi
  [ -n "$pg_bin" ] || fail "no PostgreSQL server: apt-get install postgresql"
  [ -x "$pg_bin/psql" ] || have psql || install_packages postgresql-client
}
