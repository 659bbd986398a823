#!/usr/bin/env bash
# Measures Tenon against its peers: scripts/bench.sh FOLDER_OF_MODELS [FLAGS of
# bench/run.py]. The peers live in a Python environment of their own; PyTorch is
# measured when it is added there and a model's folder has model.pt2.
set -euo pipefail
cd "$(dirname "$0")/.."
models=${1:?usage: scripts/bench.sh FOLDER_OF_MODELS [FLAGS]}
shift
scripts/build.sh release tenon machine-peak
stamp=.venv-bench/requirements.done
if ! cmp -s bench/requirements.txt "$stamp"; then
  python3 -m venv .venv-bench
  .venv-bench/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
  cp bench/requirements.txt "$stamp"
fi
.venv-bench/bin/python bench/run.py build/bin/tenon --machine build/bin/machine-peak --models "$models" \
  --out build/bench-result "$@"
