#!/usr/bin/env python3
"""Whole models on the CUDA target, executed by the emulator: cuda_models.py TENON [--precision=LIST] [FOLDER...]

As tiny_models.py, for each precision of the list (f32, f16, bf16). f32 must be as near to the references as the CPU
target (1e-4 absolute and relative). Halves are held to the root mean square of the error over that of the reference:
5e-3 for f16, whose rounding is 5e-4 and meets a few dozen roundings in a row, and 2e-2 for bf16, whose is 4e-3.
Any finding of the emulator's checkers fails a run. Without NVRTC or emulator there is nothing to test, which is said.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from models import ROOT, compile_model, differences, part

TOLERANCE = 1e-4
LIMITS = {"f16": 5e-3, "bf16": 2e-2}


def run(tenon, artifact, inputs, outputs):
    done = subprocess.run(
        [tenon, "run", str(artifact), "--run", "--device=emulated", f"--inputs={inputs}", f"--outputs={outputs}"],
        capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{artifact} --run: exit {done.returncode}\n{done.stderr}")
    return dict(np.load(outputs))


def rms_problems(want, got, limit):
    """The relative root-mean-square errors that are too great, and the greatest."""
    wrong, worst = [], 0.0
    for key in want:
        if key.startswith(("margin(", "argmax(", "stats(")):
            continue
        w, g = want[key].astype(np.float64), part(key, got).astype(np.float64)
        if g.shape != w.shape:
            wrong.append(f"{key}: shape {g.shape}, expected {w.shape}")
            continue
        scale = np.sqrt((w * w).mean()) or 1.0
        error = float(np.sqrt(((w - g) ** 2).mean()) / scale)
        worst = max(worst, error)
        if not error <= limit:
            wrong.append(f"{key}: relative rms error {error:.2e}, at most {limit:g} is allowed")
    return wrong, worst


def check(tenon, folder, precision, scratch):
    artifact = Path(scratch) / f"{folder.name}-{precision}"
    seconds = compile_model(tenon, folder / "model.onnx", artifact, "--target=cuda", "--arch=sm_80",
                            f"--precision={precision}")
    problems, worst = [], 0.0
    for case in ("", "2"):
        inputs, outputs = folder / f"inputs{case}.npz", folder / f"outputs{case}.npz"
        if not inputs.exists():
            continue
        got = run(tenon, artifact, inputs, Path(scratch) / "got.npz")
        want = dict(np.load(outputs))
        if precision == "f32":
            wrong, largest = differences(want, got, TOLERANCE, TOLERANCE)
        else:
            wrong, largest = rms_problems(want, got, LIMITS[precision])
        problems += [f"case {case or 1}: {w}" for w in wrong]
        worst = max(worst, largest)
    artifact.unlink()
    return problems, worst, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("--precision", default="f32,f16,bf16")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_intermixed_args()
    tenon = str(Path(options.tenon).resolve())
    if not (Path(tenon).parent / "libtenon_emulator.so").exists():
        print("skipped: no emulator in this build")
        return
    folders = options.folders or sorted((ROOT / "test/models/tiny").iterdir())
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            for precision in options.precision.split(","):
                try:
                    problems, worst, seconds = check(tenon, folder, precision, scratch)
                except RuntimeError as e:
                    if "no NVRTC found" in str(e):
                        print("skipped: no NVRTC on this machine")
                        return
                    problems, worst, seconds = [str(e)], float("nan"), 0
                failed += bool(problems)
                print(f"{'FAIL' if problems else 'ok  '} {folder.name:24} {precision:5} error {worst:.2e}, "
                      f"compiled in {seconds:.1f} s", flush=True)
                for p in problems:
                    print(f"     {p}")
    print(f"{failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
