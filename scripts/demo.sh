#!/usr/bin/env bash
# Sets up, builds, and compiles two models into one binary each: a small
# language model, which writes some lines of a play, and all-MiniLM-L6-v2 (real
# weights), which is asked which of some sentences mean the same.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release tenon
mkdir -p build/demo

play=test/models/shakespeare
build/bin/tenon compile $play/model.onnx --tokenizer=$play/tokenizer.json --max-context=1024 -o build/demo/shakespeare
build/demo/shakespeare --generate --prompt=$'JULIET:\n' --max-tokens=160 --temperature=0.8 --top-k=40 --seed=7
build/demo/shakespeare --show-steps --prompt="O Romeo, Romeo! wherefore art thou"

[[ -e build/demo/minilm.onnx ]] || .venv/bin/python test/models/minilm.py build/demo/minilm.onnx
build/bin/tenon compile build/demo/minilm.onnx -o build/demo/minilm
.venv/bin/python scripts/similarity.py build/demo/minilm
