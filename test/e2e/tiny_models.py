#!/usr/bin/env python3
"""Compiles, runs and compares whole models: tiny_models.py TENON [FOLDER...]

Each folder holds model.onnx with inputs.npz and outputs.npz (and perhaps inputs2/outputs2 of another shape, run by
the same artifact). By default every folder of test/models/tiny. The artifact is also run with one thread, and must
give the very same bits. Tolerance 1e-4 (absolute and relative): two correct f32 implementations of these models
differ by 1e-6 to 1e-5, a missing bias or mask moves the outputs by 1e-2 or more.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
from models import ROOT, Report, compile_model, differences, run_artifact

TOLERANCE = 1e-4


def check(tenon, folder, scratch):
    artifact = Path(scratch) / folder.name
    seconds = compile_model(tenon, folder / "model.onnx", artifact)
    problems, worst = [], 0.0
    for case in ("", "2"):
        inputs, outputs = folder / f"inputs{case}.npz", folder / f"outputs{case}.npz"
        if not inputs.exists():
            continue
        got = run_artifact(artifact, inputs, Path(scratch) / "got.npz")
        wrong, largest = differences(dict(np.load(outputs)), got, TOLERANCE, TOLERANCE)
        again = run_artifact(artifact, inputs, Path(scratch) / "again.npz", "--threads=1")
        wrong += [f"{k}: differs between thread counts" for k in got if got[k].tobytes() != again[k].tobytes()]
        problems += [f"case {case or 1}: {w}" for w in wrong]
        worst = max(worst, largest)
    return problems, worst, seconds


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folders = [Path(f) for f in sys.argv[2:]] or sorted((ROOT / "test/models/tiny").iterdir())
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            try:
                problems, worst, seconds = check(sys.argv[1], folder, scratch)
            except RuntimeError as e:
                problems, worst, seconds = [str(e)], float("nan"), 0
            report.add(f"{folder.name:28} largest difference {worst:.2e}, compiled in {seconds:.1f} s", problems)
    report.end()


if __name__ == "__main__":
    main()
