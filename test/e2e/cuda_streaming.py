#!/usr/bin/env python3
"""Weights that do not fit: cuda_streaming.py TENON

Tiny models run on the emulator with less memory than their weights need, down to what cannot do. The outputs must be
those of a run with all of them there, to the bit; also where streams put their work off as long as they may
(TENON_EMULATOR_STREAMS=late), so that a wait that is missing between the stream that brings the blocks, the one that
uses them and the host shows; and in a GPU whose memory itself is too small. Less than that must be an error that says
how much more would do.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cuda_support import compile_cuda, driver_folder, environment, skips
from models import ROOT, Report

MODELS = [("bert-tiny-ts", "f32"), ("llama-tiny-kv-ts", "f16"), ("vit-tiny-ts", "bf16")]
STEPS = 12  # sizes of memory to try, from all that is needed on
EXTRA = 100_000  # beside what is printed: the runtime's counters, and what lies between allocations


def run(artifact, inputs, out, env, *flags):
    out.unlink(missing_ok=True)
    return subprocess.run([artifact, "--run", f"--inputs={inputs}", f"--outputs={out}", *flags], capture_output=True,
                          text=True, env=env, timeout=600)


def bytes_in(pattern, text):
    value, unit = re.search(pattern, text).groups()
    return float(value) * {"k": 1e3, "M": 1e6}[unit]


def same(a, b):
    return all(a[k].tobytes() == b[k].tobytes() for k in a)


def check(tenon, name, precision, scratch):
    folder, artifact, out = ROOT / "test/models/tiny" / name, scratch / name, scratch / "out.npz"
    compile_cuda(tenon, folder / "model.onnx", artifact, "--arch=sm_80", f"--precision={precision}")
    stepwise, gpu = environment(tenon), environment(tenon) | {"LD_LIBRARY_PATH": str(driver_folder(tenon, scratch))}
    ways = {"step by step": (stepwise, "--device=emulated"), "on streams": (gpu, "--device=cuda"),
            "on late streams": (gpu | {"TENON_EMULATOR_STREAMS": "late"}, "--device=cuda")}
    inputs = folder / "inputs.npz"
    done = run(artifact, inputs, out, stepwise, "--device=emulated")
    if done.returncode:
        return [f"without a limit: {done.stderr}"], 0
    want = dict(np.load(out))
    peak, weights = (bytes_in(rf"{what} ([\d.]+) (k|M)B", done.stderr) for what in ("peak memory:", "weights"))
    enough, problems, streamed, refused = peak + EXTRA, [], 0, 0
    for step in range(STEPS):
        limit = int(enough - 1.2 * weights * step / STEPS)
        for way, (env, device) in ways.items():
            done = run(artifact, inputs, out, env, device, f"--device-memory={limit}")
            where = f"{limit} bytes, {way}"
            if done.returncode == 0:
                streamed += "come for each run in" in done.stderr
                if not same(want, dict(np.load(out))):
                    problems.append(f"{where}: other outputs than with all weights there")
                if refused:
                    problems.append(f"{where}: runs, though more memory did not do")
            else:
                problems += [f"{where}: {done.stderr!r}"] * ("would come in blocks" not in done.stderr
                                                              and "--device-memory allows" not in done.stderr)
                problems += [f"{where}: left an output"] * out.exists()
        refused += done.returncode != 0
    if not refused or streamed < 6:
        problems.append(f"{streamed} runs with blocks, {refused} sizes refused: expected some of both")
    # Several runs find blocks of the last one in their slots.
    done = subprocess.run([artifact, "--bench", f"--inputs={inputs}", "--seconds=0.01", "--device=cuda",
                           f"--device-memory={int(enough - weights / 2)}"], capture_output=True, text=True, env=gpu)
    if done.returncode or "come for each run in" not in done.stderr:
        problems.append(f"--bench: {done.stderr}")
    small = stepwise | {"TENON_EMULATED_MEMORY": str(int((enough - weights / 2) * 33 / 32))}
    done = run(artifact, inputs, out, small, "--device=emulated")
    if done.returncode or "come for each run in" not in done.stderr or not same(want, dict(np.load(out))):
        problems.append(f"on a small GPU: {done.stderr}")
    return problems, streamed


@skips
def main():
    tenon, report = str(Path(sys.argv[1]).resolve()), Report()
    with tempfile.TemporaryDirectory() as scratch:
        for name, precision in MODELS:
            problems, streamed = check(tenon, name, precision, Path(scratch))
            report.add(f"{name:20} {precision:5} {streamed} runs with blocks", problems)
    report.end()


if __name__ == "__main__":
    main()
