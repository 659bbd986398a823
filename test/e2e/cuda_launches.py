#!/usr/bin/env python3
"""How many kernels a layer takes on the CUDA target: cuda_launches.py TENON

Counts the launches of tiny models' plans that belong to a layer, as their nodes' names say, and that have blocks for the
sizes of a run: of BERT at most 8 a layer; of Qwen2 at most 7 for a step of decoding with caches that are state. No layer in
halves may take the plain form of attention, the one with a longer prompt neither.
"""
import re
import sys
import tempfile
from pathlib import Path

from cuda_support import compile_cuda, skips
from models import ROOT, Report

# Model, flags, sizes, what a layer's nodes are called, launches at most.
RUNS = [
    ("bert-tiny-ts", [], {"batch": 2, "sequence": 128}, r"/layer\.(\d+)/", 8),
    ("bert-tiny-ts14", [], {"batch": 2, "sequence": 128}, r"/layer\.(\d+)/", 8),
    ("qwen2-micro-ts-sdpa", ["--max-context=64"], {"batch": 1, "sequence": 1, "past": 11}, r"/layers\.(\d+)/", 7),
    ("qwen2-micro-ts-sdpa", ["--max-context=64"], {"batch": 1, "sequence": 48, "past": 0}, r"/layers\.(\d+)/", 9),
]


def launches(text, sizes):
    """The kernel and the nodes of each launch that has blocks."""
    known = sizes | {"last_sequence": 1, "floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b), "min": min, "max": max}
    for kernel, grid, nodes in re.findall(r"launch (\w+) #\d+.*? grid \[(.*?)\] threads .*? loc\((.*)\)", text):
        if eval(grid, {"__builtins__": {}}, known)[0] > 0:  # formulas that the compiler wrote
            yield kernel, nodes


def check(tenon, name, flags, sizes, pattern, most, scratch):
    plan = Path(scratch) / "plan.tnk"
    compile_cuda(tenon, ROOT / "test/models/tiny" / name / "model.onnx", plan, "--arch=sm_80", "--precision=f16",
                 "--stop-after=planned", *flags)
    layers, problems = {}, []
    for kernel, nodes in launches(plan.read_text(), sizes):
        of = set(re.findall(pattern, nodes))
        for layer in of if len(of) == 1 else ():
            layers.setdefault(layer, []).append(kernel)
        if kernel == "attention":
            problems.append(f"plain attention of {nodes}")
    problems += [f"layer {layer}: {len(kernels)} launches, at most {most} are allowed: {kernels}"
                 for layer, kernels in layers.items() if len(kernels) > most]
    if len(layers) < 2 or min(map(len, layers.values())) < 4:
        problems.append(f"found no two layers of four launches: {layers}")
    return f"{name} {sizes}: {[len(kernels) for kernels in layers.values()]} launches a layer", problems


@skips
def main():
    tenon, report = str(Path(sys.argv[1]).resolve()), Report()
    with tempfile.TemporaryDirectory() as scratch:
        for run in RUNS:
            report.add(*check(tenon, *run, scratch))
    report.end()


if __name__ == "__main__":
    main()
