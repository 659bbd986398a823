#!/usr/bin/env python3
"""com.microsoft MatMulNBits and GatherBlockQuantized on the CUDA target, executed by the emulator:
cuda_quantised_weights.py TENON

The cases of quantised_weights.py, but those that ask for rows of 8 bits: this target does not round. Each product, of few
rows or many, reads its weights packed. Without NVRTC or emulator there is nothing to test, which is said.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import quantised_weights
from models import compile_model, run_artifact


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tenon = Path(sys.argv[1]).resolve()
    emulator = tenon.parent / "libtenon_emulator.so"
    if not emulator.exists():
        print("skipped: no emulator in this build")
        return
    os.environ.setdefault("TENON_CUDA_DRIVER", str(emulator))
    quantised_weights.PRODUCTS = [case for case in quantised_weights.PRODUCTS if case[-1] != 4]
    model, feeds, want = quantised_weights.make_model()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(model, scratch / "m.onnx")
        np.savez(scratch / "in.npz", **feeds)
        try:
            compile_model(tenon, scratch / "m.onnx", scratch / "m", "--target=cuda", "--arch=sm_80")
        except RuntimeError as e:
            if "no NVRTC found" not in str(e):
                raise
            print("skipped: no NVRTC on this machine")
            return
        got = run_artifact(scratch / "m", scratch / "in.npz", scratch / "out.npz", "--device=emulated")
        subprocess.run([tenon, "compile", scratch / "m.onnx", "-o", scratch / "p.tnk", "--stop-after=planned", "--target=cuda"], check=True)
        launches = (scratch / "p.tnk").read_text().count("launch gemv_codes ")
    problems = quantised_weights.compare(got, want)
    if launches != len(quantised_weights.PRODUCTS):
        problems.append(f"{launches} launches read codes, expected {len(quantised_weights.PRODUCTS)}")
    for problem in problems:
        print("FAIL", problem)
    print(f"{len(want)} tensors, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
