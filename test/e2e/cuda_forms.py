#!/usr/bin/env python3
"""Forms of one matrix product on the CUDA target: cuda_forms.py TENON

Artifacts with a symbolic number of rows, on emulated GPUs. With many rows sm_90a takes the form with wgmma and bulk
copies, in f16 and in 8 bits, with few rows k is shared among blocks, and what the emulator says it ran must show it. Results are held to a relative root-mean-square error against f64. Each
of two products in a row has two operands whose relative rounding errors are 2^-12 (f16), a 127th of a row's greatest
element, which is three or four deviations of normal numbers, over sqrt(12) (int8: 0.8 %), and 2^-4 over sqrt(3), less
where a number is not just above a power of two (fp8: 2.6 %): four of them make 1.6 % and 5.2 %.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from cuda_support import compile_cuda, skips
from models import Report
from onnx import TensorProto, helper, numpy_helper

LIMITS = {"f16": 2e-3, "int8": 2.5e-2, "fp8": 8e-2}
# Precision, architectures to compile for, and runs: architecture, rows, whether sm_90a's form must run.
CASES = [
    ("f16", "sm_80,sm_90a", [("sm_80", 700, False), ("sm_80", 40, False), ("sm_90a", 700, True), ("sm_90a", 40, False),
                             ("sm_90a", 1, False), ("sm_90a", 0, False)]),
    ("int8", "sm_75,sm_80,sm_90a", [("sm_75", 100, False), ("sm_80", 300, False), ("sm_80", 1, False), ("sm_80", 0, False),
                                    ("sm_90a", 700, True), ("sm_90a", 1, False)]),
    ("fp8", "sm_89,sm_90a", [("sm_89", 300, False), ("sm_90a", 700, True), ("sm_90a", 1, False)]),
]
BULK_THREADS = 384


def make_model(path, rng, k=72, hidden=512, n=136):
    """relu(x W1 + b1) W2 + b2; returns it as a function in f64."""
    shapes = {"w1": (k, hidden), "b1": (hidden,), "w2": (hidden, n), "b2": (n,)}
    weights = {name: (rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32) for name, s in shapes.items()}
    nodes = [("MatMul", "x w1", "a"), ("Add", "a b1", "c"), ("Relu", "c", "d"), ("MatMul", "d w2", "e"),
             ("Add", "e b2", "y")]
    graph = helper.make_graph(
        [helper.make_node(op, ins.split(), [out]) for op, ins, out in nodes], "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["m", k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", n])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    return lambda x: np.maximum(x @ w["w1"] + w["b1"], 0) @ w["w2"] + w["b2"]


def run(tenon, artifact, arch, x, folder):
    """The result, and the threads and blocks of every kernel that ran."""
    np.savez(folder / "in.npz", x=x)
    done = subprocess.run(
        [tenon, "run", str(artifact), "--run", "--device=emulated", f"--emulated-arch={arch}",
         f"--inputs={folder / 'in.npz'}", f"--outputs={folder / 'out.npz'}",
         f"--emulator-report={folder / 'report.json'}"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{arch}: exit {done.returncode}\n{done.stderr}")
    report = json.loads((folder / "report.json").read_text())
    kernels = [(k["threads"] // k["blocks"], k["blocks"]) for k in report["kernels"]]
    return dict(np.load(folder / "out.npz"))["y"], kernels


def check(tenon, precision, archs, runs, reference, folder, rng):
    """What is wrong with the runs of one artifact."""
    artifact = folder / f"mlp-{precision}"
    compile_cuda(tenon, folder / "mlp.onnx", artifact, *([f"--arch={archs}"] if archs else []), f"--precision={precision}")
    problems = []
    for arch, rows, bulk in runs:
        what = f"{precision} on {arch}, {rows} rows"
        x = rng.standard_normal((rows, 72)).astype(np.float32)
        got, kernels = run(tenon, artifact, arch, x, folder)
        want = reference(x.astype(np.float64))
        if want.shape != got.shape:
            problems.append(f"{what}: shape {got.shape}, expected {want.shape}")
            continue
        error = float(np.sqrt(((want - got) ** 2).mean() / (want ** 2).mean())) if rows else 0.0
        print(f"{what}: relative rms error {error:.1e}; threads and blocks {kernels}", flush=True)
        if not error <= LIMITS[precision]:
            problems.append(f"{what}: relative rms error {error:.1e}, at most {LIMITS[precision]} is allowed")
        if bulk != any(threads == BULK_THREADS for threads, _ in kernels):
            problems.append(f"{what}: the form of sm_90a {'did not run' if bulk else 'ran'}")
    return problems


@skips
def main():
    tenon, rng, report = str(Path(sys.argv[1]).resolve()), np.random.default_rng(11), Report()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        reference = make_model(folder / "mlp.onnx", rng)
        for precision, archs, runs in CASES:
            try:
                problems = check(tenon, precision, archs, runs, reference, folder, rng)
            except RuntimeError as e:
                problems = [e]
            report.add(precision, problems)
    report.end()


if __name__ == "__main__":
    main()
