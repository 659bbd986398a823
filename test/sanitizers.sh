#!/usr/bin/env bash
# Builds and passes tests with sanitizers, in build folders of their own:
# sanitizers.sh ci|full PYTHON
#
#   ci    The runtime, which reads files from anywhere and has all the threads.
#   full  All that scripts/test.sh runs, with the address and undefined-behaviour
#         sanitizers and with assertions.
set -euo pipefail
cd "$(dirname "$0")/.."
label=$1 python=$2
fixtures=
# Where libraries come and go with threads (NVRTC), the leak check can fail on
# thread-local memory that it followed.
export ASAN_OPTIONS=intercept_tls_get_addr=0

# pass PRESET TESTS TARGET...: builds the targets (all without one), runs tests.
pass() {
  local preset=$1 tests=$2
  shift 2
  cmake --preset "$preset" -DTENON_PYTHON="$python" >/dev/null
  cmake --build --preset "$preset" ${@:+--target "$@"}
  ctest --test-dir "build-$preset" -L ci -R "$tests" $fixtures --output-on-failure \
    --no-tests=error --parallel "$(nproc)"
}

if [[ $label == full ]]; then
  pass asan .
else
  # The seeds that the compiler makes are for the parts that are not built here.
  fixtures="-FA fuzz_seeds"
  pass asan '^(runtime|fuzz[.]replay_(npz|plan|payload))$' \
    RuntimeTests replay_npz replay_plan replay_payload plan_seed_files
  pass tsan '^runtime$' RuntimeTests
fi
