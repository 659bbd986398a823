#!/usr/bin/env bash
# Sets up, builds, compiles all-MiniLM-L6-v2 (real weights) into one binary and
# asks that binary which of some sentences mean the same.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release tenon
mkdir -p build/demo
[[ -e build/demo/minilm.onnx ]] || .venv/bin/python test/models/minilm.py build/demo/minilm.onnx
build/bin/tenon compile build/demo/minilm.onnx -o build/demo/minilm
.venv/bin/python scripts/similarity.py build/demo/minilm
