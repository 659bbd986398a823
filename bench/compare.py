#!/usr/bin/env python3
"""Tenon against ONNX Runtime on the same inputs, in alternating rounds: compare.py TENON [options]

For each model and shape both are first checked to agree, then timed in turn, ROUNDS times, SECONDS each, with the same
number of threads; a round gives one median for each and one ratio. Printed: the medians, the median ratio
(Tenon / ONNX Runtime: below 1 is faster) and its spread. Machines are noisy: quote ratios, not times.

Models are folders with model.onnx (and its side files) under --models, or the tiny ones in the repository.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# cell: (model folder, batch, sequence). Sequence 0: images.
CELLS = {
    "bert-1x128": ("bert-base-ts", 1, 128),
    "bert-8x128": ("bert-base-ts", 8, 128),
    "minilm-1x16": ("minilm", 1, 16),
    "minilm-32x128": ("minilm", 32, 128),
    "vit-1": ("vit-base", 1, 0),
}


def make_inputs(session, batch, sequence):
    """Ids, all-ones masks and zero token types, or pixels, for a model's inputs."""
    rng = np.random.default_rng(7)
    feeds = {}
    for i in session.get_inputs():
        if sequence == 0:
            shape = [batch if isinstance(d, str) else d for d in i.shape]
            feeds[i.name] = rng.standard_normal(shape).astype(np.float32)
        elif "mask" in i.name:
            feeds[i.name] = np.ones((batch, sequence), np.int64)
        elif "type" in i.name:
            feeds[i.name] = np.zeros((batch, sequence), np.int64)
        else:
            feeds[i.name] = rng.integers(1000, 20000, (batch, sequence), np.int64)
    return feeds


def time_session(session, feeds, seconds):
    times, end = [], time.perf_counter() + seconds
    session.run(None, feeds)
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def time_artifact(artifact, inputs, seconds, threads):
    done = subprocess.run([artifact, "--bench", f"--inputs={inputs}", f"--threads={threads}", f"--seconds={seconds}", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["median_ms"]


def measure(name, args, threads, artifact, session, feeds, inputs):
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(time_artifact(artifact, inputs, args.seconds, threads))
        theirs.append(time_session(session, feeds, args.seconds))
    ratios = [a / b for a, b in zip(ours, theirs)]
    row = {"cell": name, "threads": threads, "tenon_ms": statistics.median(ours), "onnxruntime_ms": statistics.median(theirs),
           "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}
    print(f"{name:16} {threads} thread{'s' if threads > 1 else ' '}  tenon {row['tenon_ms']:9.2f} ms   onnxruntime {row['onnxruntime_ms']:9.2f} ms"
          f"   ratio {row['ratio']:.3f}  ({row['ratio_min']:.3f} .. {row['ratio_max']:.3f})", flush=True)
    return row


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tenon")
    ap.add_argument("--models", required=True, help="folder of model folders")
    ap.add_argument("--cells", nargs="*", default=list(CELLS), choices=list(CELLS))
    ap.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=1.5)
    ap.add_argument("--json", help="write the rows there")
    args = ap.parse_args()
    import onnxruntime as ort

    rows, artifacts = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        for cell in args.cells:
            folder, batch, sequence = CELLS[cell]
            model = Path(args.models) / folder / "model.onnx"
            if not model.exists():
                print(f"{cell:16} skipped: no {model}")
                continue
            if folder not in artifacts:
                artifacts[folder] = str(Path(scratch) / folder)
                subprocess.run([args.tenon, "compile", str(model), "-o", artifacts[folder]], check=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            for threads in args.threads:
                options = ort.SessionOptions()
                options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
                session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
                feeds = make_inputs(session, batch, sequence)
                inputs, outputs = f"{scratch}/in.npz", f"{scratch}/out.npz"
                np.savez(inputs, **feeds)
                subprocess.run([artifacts[folder], "--run", f"--inputs={inputs}", f"--outputs={outputs}", f"--threads={threads}"],
                               check=True, stderr=subprocess.DEVNULL)
                got = np.load(outputs)
                for output, want in zip(session.get_outputs(), session.run(None, feeds)):
                    worst = np.abs(got[output.name] - want).max()
                    if not worst <= 2e-4:
                        sys.exit(f"{cell}: '{output.name}' differs by {worst}: not timed")
                rows.append(measure(cell, args, threads, artifacts[folder], session, feeds, inputs))
                del session
    if args.json:
        Path(args.json).write_text(json.dumps({"onnxruntime": ort.__version__, "cpus": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
