# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts beside it: which Debian packages a task needs, and how to install them.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

# packages_of GROUP: the Debian 12 packages of a group. A new dependency is added here only.
packages_of() {
  case $1 in
    run) echo cmake ninja-build g++ libfmt-dev nlohmann-json3-dev libcli11-dev libeigen3-dev libboost-dev \
      zlib1g-dev libsqlite3-dev libprotobuf-dev ;;
    test) echo libgtest-dev libgmock-dev libbenchmark-dev libsimgrid-dev libtorch-dev libgloo-dev \
      libopenblas0-pthread ;;
    bench) echo libbenchmark-dev ;;
    check) echo git make clang-format clang-tidy ;;
    fuzz) echo clang libclang-rt-14-dev ;;
    *) echo "scripts/lib.sh: no package group is named $1" >&2; return 2 ;;
  esac
}

# install_missing GROUP...: installs what dpkg does not have, and touches nothing else.
install_missing() {
  local group list package missing=() sudo=()
  if ! command -v dpkg-query >/dev/null; then
    echo "towtank: no dpkg here; CMake will say what is missing" >&2
    return 0
  fi
  for group in "$@"; do
    list=$(packages_of "$group")
    for package in $list; do
      dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
        missing+=("$package")
    done
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "towtank: as root, run: apt-get install ${missing[*]}" >&2
      return 1
    fi
    sudo=(sudo)
  fi
  echo "towtank: installing ${missing[*]}" >&2
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
