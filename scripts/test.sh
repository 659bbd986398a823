#!/usr/bin/env bash
# Sets up, builds and passes the tests: scripts/test.sh [ci|full|cuda]
set -euo pipefail
cd "$(dirname "$0")/.."
label=${1:-ci}
scripts/build.sh release
ctest --test-dir build -L "$label" --output-on-failure --parallel "$(nproc)"
