#!/usr/bin/env python3
"""Models of real sizes on the CUDA target, executed by the emulator: cuda_large.py TENON [--models=DIR] [NAME...]

Folders with model.onnx, inputs.npz and outputs.npz are looked for in --models or $TENON_MODELS; ../shared/models makes
them where it is there (fill.py), else there is nothing to test. The times are those of whole runs of the program, with
loading and checking its weights and its PTX; limits as in cuda_models.py, but for the one of BERT-base, see below.

A language model's second case is a prefill, its first three tokens behind a cache: here two, then one behind the cache
that these leave, a step of decoding.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cuda_support import LIMITS, Skipped, compile_cuda, emulator_beside, run_emulated, skips
from half_reference import relative_errors
from models import SHARED, Report, differences

# Model, case, precision, seconds at most on two processors.
RUNS = [
    ("minilm", "1x16", "f32", None), ("minilm", "1x16", "f16", None), ("minilm", "1x16", "bf16", None),
    ("bert-base-ts", "2", "f16", 60), ("bert-base-ts", "2", "bf16", 60), ("bert-base-ts", "", "f32", None),
    ("gpt2-ts", "", "f16", None), ("gpt2-ts", "", "f32", None),
    ("vit-base", "", "f16", None), ("vit-base", "", "f32", None),
    ("qwen2-0.5b", "2", "f16", None), ("qwen2-0.5b", "decode", "f16", None),
]
TOLERANCE = 2e-3  # of f32: twelve layers of 768, where one correct implementation differs from the other by 1e-5


def find_models(given, scratch):
    for folder in (given, os.environ.get("TENON_MODELS")):
        if folder:
            return Path(folder)
    fill = SHARED / "models" / "fill.py"
    if not fill.exists():
        raise Skipped("no models of real sizes: name their folder in $TENON_MODELS")
    for name in dict.fromkeys(name for name, *_ in RUNS):
        subprocess.run([sys.executable, fill, name, "--out", scratch], check=True, stdout=subprocess.DEVNULL)
    return Path(scratch)


def shorter(arrays, count):
    """The first `count` tokens of a language model's case."""
    cut = dict(arrays)
    past = arrays["attention_mask"].shape[1] - arrays["input_ids"].shape[1]
    for key in ("input_ids", "position_ids"):
        cut[key] = arrays[key][:, :count]
    cut["attention_mask"] = arrays["attention_mask"][:, :past + count]
    return cut


def last_of(arrays, out):
    """The token behind those whose run gave `out`."""
    fed = dict(arrays)
    for key in ("input_ids", "position_ids"):
        fed[key] = arrays[key][:, -1:]
    return fed | {key.replace("present", "past_key_values"): value for key, value in out.items() if key.startswith("present")}


def run_case(folder, case, run):
    """What is wanted, what came, seconds."""
    if case == "1x16":  # the first row of a case, as long as it is, and what pads it
        inputs = {k: np.pad(v[:1], ((0, 0), (0, 16 - v.shape[1]))) for k, v in np.load(folder / "inputs.npz").items()}
        want = np.load(folder / "outputs.npz")["last_hidden_state"][:1]
        got, seconds = run(inputs)
        return {"last_hidden_state": want}, {"last_hidden_state": got["last_hidden_state"][:, :want.shape[1]]}, seconds
    if case == "decode":
        inputs = dict(np.load(folder / "inputs.npz"))
        first, _ = run(shorter(inputs, inputs["input_ids"].shape[1] - 1))
        got, seconds = run(last_of(inputs, first))
        want = {k: v for k, v in np.load(folder / "outputs.npz").items() if k.startswith("logits[0,-1") or "[:,:,-1,:]" in k}
        return want, got, seconds
    got, seconds = run(folder / f"inputs{case}.npz")
    return dict(np.load(folder / f"outputs{case}.npz")), got, seconds


def check(options, models, name, case, precision, limit, scratch):
    folder, artifact = models / name, Path(scratch) / f"{name}-{precision}"
    if not artifact.exists():
        for old in Path(scratch).glob(f"{name}-*"):
            old.unlink()
        compile_cuda(options.tenon, folder / "model.onnx", artifact, f"--arch={options.arch}",
                     f"--precision={precision}")
    want, got, seconds = run_case(folder, case, lambda feeds: run_emulated(options.tenon, artifact, feeds, scratch, arch=options.arch))
    if precision == "f32":
        problems, worst = differences(want, got, TOLERANCE, TOLERANCE)
    else:
        errors = relative_errors(want, got)
        problems = [f"{k}: relative rms error {e:.2e}, at most {LIMITS[precision]} is allowed"
                    for k, e in errors.items() if not e <= LIMITS[precision]]
        worst = max(errors.values())
    clock, processors = seconds
    if limit and processors > 2 * limit:  # the clock's time on two processors that have nothing else to do
        problems.append(f"took {processors:.1f} s of processor time, at most {2 * limit} s is allowed")
    shape = "x".join(str(n) for n in next(iter(np.load(Path(scratch) / "given.npz").values())).shape) if case in ("1x16", "decode") else f"case {case or 1}"
    return f"{name:14} {shape:8} {precision:5} error {worst:.2e}, {clock:.1f} s ({processors:.1f} s of processors)", problems


@skips
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--models", help="folder of models")
    parser.add_argument("--arch", default="sm_80", help="the GPU that the emulator plays")
    parser.add_argument("names", nargs="*", help="models to test; all without any")
    options, report = parser.parse_intermixed_args(), Report()
    with tempfile.TemporaryDirectory() as scratch:
        emulator_beside(options.tenon)
        models = find_models(options.models, scratch)
        for name, case, precision, limit in RUNS:
            if options.names and name not in options.names:
                continue
            try:
                report.add(*check(options, models, name, case, precision, limit, scratch))
            except RuntimeError as e:
                report.add(f"{name:14} {precision}", [e])
    report.end()


if __name__ == "__main__":
    main()
