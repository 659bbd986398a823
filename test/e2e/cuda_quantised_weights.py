#!/usr/bin/env python3
"""com.microsoft MatMulNBits and GatherBlockQuantized on the CUDA target, executed by the emulator:
cuda_quantised_weights.py TENON

The cases of quantised_weights.py, but those that ask for rows of 8 bits: this target does not round. Each product, of few
rows or many, reads its weights packed. In f32, and in f16, where weights and rows are rounded to halves. Without NVRTC or
emulator there is nothing to test, which is said.
"""
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import quantised_weights
from cuda_support import LIMITS, compile_cuda, emulator_beside, run_emulated, skips
from half_reference import relative_errors
from models import Report


def packed_launches(tenon, model, out, *flags):
    """What is wrong with the launches of the products."""
    compile_cuda(tenon, model, out, "--stop-after=planned", *flags)
    text, problems = out.read_text(), []
    launches = text.count("launch gemm_codes ")
    if launches != len(quantised_weights.PRODUCTS):
        problems.append(f"{launches} launches of tiles of codes, expected {len(quantised_weights.PRODUCTS)}")
    return problems


@skips
def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tenon, report = str(Path(sys.argv[1]).resolve()), Report()
    os.environ.setdefault("TENON_CUDA_DRIVER", str(emulator_beside(tenon)))
    quantised_weights.PRODUCTS = [case for case in quantised_weights.PRODUCTS if case[-1] != 4]
    model, feeds, want = quantised_weights.make_model()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(model, scratch / "m.onnx")
        for precision in ("f32", "f16"):
            flags = ["--arch=sm_80", f"--precision={precision}"]
            compile_cuda(tenon, scratch / "m.onnx", scratch / "m", *flags)
            got, _ = run_emulated(tenon, scratch / "m", feeds, scratch)
            if precision == "f32":
                problems = quantised_weights.compare(got, want)
            else:
                errors = relative_errors(want, got)
                problems = [f"{key}: relative rms error {e:.1e}" for key, e in errors.items() if not e <= LIMITS["f16"]]
            report.add(precision, problems + packed_launches(tenon, scratch / "m.onnx", scratch / "p.tnk", *flags))
    report.end()


if __name__ == "__main__":
    main()
