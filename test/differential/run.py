#!/usr/bin/env python3
"""Makes random graphs and runs them in every way that there is.

usage: run.py DRIVER passes|cpu|cuda --seeds=A..B [--orders=N] [--batch=N]
              [--state=FILE] [--keep=FOLDER] [--fast]

Each seed is a graph. Compared with the reference evaluator's results are, in
`passes`, ONNX Runtime's, and the reference's after each pass and after random
orders of passes; in `cpu` and `cuda`, compiled code's. How far they may differ
is in Oracle.h. DRIVER is tenon-differential.

--state names a file to which what was done is added; what is there is not done
again. --keep copies graphs that differ to a folder. Fails when anything differs.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from graphs import ONNX, SETS, Graph, sizes
from ops import OPS
from patterns import PATTERNS

onnxruntime.set_default_logger_severity(4)
# How many graphs are made, run and noted down at a time.
SLICE = 100
# What the driver says that is no difference.
HARMLESS = ("pass", "select", "refused")


def make(seed):
    """The graph of a seed."""
    g = Graph(seed)
    steps = g.r.choice((1, 2, 3, 5, 8, 12, 18))
    # What masks hide, and what becomes of an infinity in 8 bits, is not said.
    patterned = 0 if g.wild else g.r.choice((0, 0.15, 0.4))
    weights = [w for w, _ in OPS], [w for w, _ in PATTERNS]
    for _ in range(steps):
        table = PATTERNS if g.maybe(patterned) else OPS
        before = (len(g.nodes), len(g.values))
        function = g.r.choices(table, weights[table is PATTERNS])[0][1]
        function(g)
        if len(g.nodes) == before[0] and len(g.values) == before[1] and not g.inputs:
            g.input()
    g.model = g.finish()
    return g


def tensor(name, array, type):
    return onnx.helper.make_tensor(name, type, array.shape, np.ascontiguousarray(array).tobytes(), raw=True)


def save_tensors(path, pairs):
    """Writes a graph that gives arrays, if there are any."""
    if not pairs:
        return
    tensors = [tensor(f"t{i}", np.asarray(a), t) for i, (a, t) in enumerate(pairs)]
    infos = [onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    graph = onnx.helper.make_graph([], "tensors", [], infos, tensors)
    onnx.save(onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)]), path)


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # of many kinds: what it has no kernel for, mostly
        return None


def expect(g, base):
    """Writes what ONNX Runtime makes of a graph, where it does."""
    other = session(g.model) if g.float != "bf16" else None
    for k in range(SETS if other else 0):
        try:
            expected = other.run(None, {v.name: g.arrays[k][v.name] for v in g.inputs})
        except Exception:
            continue
        for value, array in zip(g.outputs, expected):
            if array.shape != sizes(value.shape, k):
                sys.exit(f"{base.name}: {value} is {array.shape} in data set {k}: the generator is wrong")
        save_tensors(base / f"expected{k}.onnx", [(a, ONNX[v.type]) for v, a in zip(g.outputs, expected)])


def expect_all(graphs, folder):
    """The same of many, in a process of its own: on some graphs ONNX Runtime ends its process."""
    left = dict(graphs)
    while left:
        child = os.fork()
        if child == 0:
            for seed, g in left.items():
                expect(g, folder / str(seed))
                (folder / str(seed) / "expected").touch()
            sys.stderr.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
            sys.exit("the generator is wrong")
        left = {seed: g for seed, g in left.items() if not (folder / str(seed) / "expected").exists()}
        if left:
            del left[next(iter(left))]


def write(g, seed, folder):
    """The files of a graph but for what is expected."""
    base = folder / str(seed)
    base.mkdir()
    onnx.save(g.model, base / "model.onnx")
    for k in range(SETS):
        save_tensors(base / f"inputs{k}.onnx", [(g.arrays[k][v.name], ONNX[v.type]) for v in g.inputs])


def line_of(g, seed, folder):
    """The line of a graph for the driver's list."""
    base = folder / str(seed)
    fields = [str(seed), str(base / "model.onnx")]
    for k in range(SETS if g.symbols else 1):
        for kind in ("inputs", "expected"):
            path = base / f"{kind}{k}.onnx"
            fields.append(str(path) if path.exists() else "-")
    return "\t".join(fields)


def drive(options, rows, path):
    """{row: (status, message)} of one run of the driver; crashed rows too."""
    results, left = {}, list(range(len(rows)))
    while left:
        text = "".join(rows[r] + "\n" + ("\n" if i % options.batch == options.batch - 1 else "")
                       for i, r in enumerate(left))
        path.write_text(text)
        process = subprocess.run([options.driver, options.mode, path, str(options.orders)], text=True,
                                 capture_output=True)
        begun = None
        for line in process.stdout.splitlines():
            number, status, *message = line.split("\t")
            if status == "begin":
                begun = left[int(number)]
            else:
                results[left[int(number)]] = (status, message[0] if message else "")
        if process.returncode == 0:
            for row in left:
                results.setdefault(row, ("error", "the driver says nothing"))
        elif begun is None or begun in results:
            sys.exit(f"the driver ended with {process.returncode}: {process.stderr[-2000:]}")
        else:
            last = (process.stderr.strip().splitlines() or [""])[-1]
            results[begun] = ("crash", f"{process.returncode} {last}")
        left = [row for row in left if row not in results]
    return results


def run_slice(options, seeds):
    """[(seed, status, message)]"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        graphs = {seed: make(seed) for seed in seeds}
        for seed, g in graphs.items():
            write(g, seed, folder)
        expect_all(graphs, folder)
        rows = [line_of(g, seed, folder) for seed, g in graphs.items()]
        results = drive(options, rows, folder / "list")
        for i, seed in enumerate(seeds):
            if options.keep and results[i][0] not in HARMLESS:
                shutil.copytree(folder / str(seed), options.keep / str(seed), dirs_exist_ok=True)
                relative = rows[i].replace(str(folder), str(options.keep))
                (options.keep / str(seed) / "list").write_text(relative + "\n")
        return [(seed, *results[i]) for i, seed in enumerate(seeds)]


def parse_seeds(text):
    first, _, last = text.partition("..")
    return range(int(first), int(last or int(first) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("mode", choices=["passes", "cpu", "cuda"])
    parser.add_argument("--seeds", type=parse_seeds, required=True)
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--batch", type=int, default=SLICE)
    parser.add_argument("--state", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()

    done = {}
    if options.state and options.state.exists():
        for line in options.state.read_text().splitlines():
            for seed, status, message in json.loads(line):
                done[seed] = (status, message)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    todo = [seed for seed in options.seeds if seed not in done]
    for start in range(0, len(todo), SLICE):
        results = run_slice(options, todo[start:start + SLICE])
        for seed, status, message in results:
            done[seed] = (status, message)
            if status not in HARMLESS:
                print(f"seed {seed}: {status}: {message}", flush=True)
        if options.state:
            with options.state.open("a") as file:
                file.write(json.dumps(results) + "\n")

    chosen = [done[seed] for seed in options.seeds]
    counts = collections.Counter(status for status, _ in chosen)
    print(f"{options.mode}: {len(chosen)} graphs: " + ", ".join(f"{n} {s}" for s, n in counts.most_common()))
    totals = np.sum([list(map(int, m.split())) for s, m in chosen if s == "pass" and m] or [[0, 0, 0]], axis=0)
    if totals[0]:
        print(f"of {totals[0]} elements of outputs {100 * totals[1] / totals[0]:.1f} % say nothing under noise, "
              f"{100 * totals[2] / totals[0]:.1f} % are NaN")
    return 1 if any(status not in HARMLESS for status, _ in chosen) or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
