#!/usr/bin/env python3
"""Tenon against its peers on the same inputs with the same threads, in alternating rounds: run.py TENON --models FOLDER

For each cell (cells.py) every runtime that is installed gets a process of its own (worker.py). Their outputs are compared
before anything is timed. Then they take turns, ROUNDS times, SECONDS each; a round gives one median for each and one ratio.
Machines are noisy: ratios count, with their spread, and what the machine can do at most is measured in the same run, before
and after. Writes result.json, result.md and result.png.
"""
import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import report
from cells import CELLS, make_inputs

HERE = Path(__file__).resolve().parent
PACKAGES = {"onnxruntime": "onnxruntime", "openvino-f32": "openvino", "openvino-bf16": "openvino", "torch": "torch"}
REFERENCE = "onnxruntime"


class Worker:
    def __init__(self, kind, model, inputs, threads, pages):
        self.process = subprocess.Popen([sys.executable, str(HERE / "worker.py"), kind, str(model), str(inputs), str(threads), pages],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"failed at '{command}'")
        return json.loads(answer)

    def median(self, seconds):
        answer = self.ask(f"run {seconds}")
        return answer.get("median_ms") or statistics.median(answer["times"]) * 1e3, answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ports_of(model):
    """Inputs as (name, dtype, dimensions) of an ONNX file."""
    import onnx
    graph = onnx.load(str(model), load_external_data=False).graph
    constant = {x.name for x in graph.initializer}
    return [(i.name, onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
             [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]) for i in graph.input if i.name not in constant]


def difference(got, want):
    """The largest relative rms difference of the outputs that are floats."""
    worst = 0.0
    for name, x in want.items():
        if x.dtype.kind == "f" and x.size:
            y = got[name].astype(np.float64)
            error = np.sqrt(np.mean((y - x) ** 2)) / max(np.sqrt(np.mean(x.astype(np.float64) ** 2)), 1e-30)
            worst = max(worst, float("inf") if np.isnan(error) else float(error))
    return worst


def measure_machine(program, threads):
    return json.loads(subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout)


def better(a, b):
    return {key: max(a[key], b[key]) for key in a}


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, Path(scratch)
        self.scratch.mkdir(parents=True, exist_ok=True)

    def compile(self, cell, model):
        """The artifact of a cell and the seconds that compiling took; one that is younger than the compiler is kept."""
        out = self.scratch / "-".join([cell.model, *cell.how.flags]).replace("--", "").replace("=", "-")
        stamp = out.with_name(out.name + ".seconds")
        if not stamp.exists() or stamp.stat().st_mtime < os.stat(self.args.tenon).st_mtime:
            start = time.perf_counter()
            done = subprocess.run([self.args.tenon, "compile", str(model), "-o", str(out), *cell.how.flags],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f"{cell.name}: {done.stderr.strip()}")
            stamp.write_text(str(time.perf_counter() - start))
        return out, float(stamp.read_text())

    def compile_all(self, cells):
        for cell in cells:
            if (model := Path(self.args.models) / cell.model / "model.onnx").exists():
                self.compile(cell, model)

    def peers(self, cell):
        names = [p for p in cell.how.peers if p not in self.args.without and importlib.util.find_spec(PACKAGES[p])]
        if (Path(self.args.models) / cell.model / "model.pt2").exists() and importlib.util.find_spec("torch"):
            names.append("torch")
        return names

    def check(self, cell, workers, reference):
        """Drops the peers that disagree; Tenon must not."""
        differences = {}
        for name, worker in list(workers.items()):
            path = self.scratch / "out.npz"
            worker.ask(f"outputs {path}")
            differences[name] = difference(dict(np.load(path)), reference)
            if differences[name] > cell.how.tolerance:
                print(f"{cell.name}: {name} differs by {differences[name]:.1e} (relative rms), more than {cell.how.tolerance}: not timed")
                workers.pop(name).close()
        return differences

    def reference(self, model, inputs, threads):
        worker = Worker(REFERENCE, model, inputs, threads, "map")
        worker.ask("load")
        worker.ask(f"outputs {self.scratch / 'reference.npz'}")
        worker.close()
        return dict(np.load(self.scratch / "reference.npz"))

    def rounds(self, workers):
        times, answer = {name: [] for name in workers}, None
        for _ in range(self.args.rounds):
            for name, worker in workers.items():
                ms, got = worker.median(self.args.seconds)
                times[name].append(ms)
                answer = got if name == "tenon" else answer
        return times, answer

    def row(self, cell, threads):
        model = Path(self.args.models) / cell.model / "model.onnx"
        if not model.exists():
            return print(f"{cell.name} skipped: no {model}")
        artifact, compile_s = self.compile(cell, model)
        inputs = self.scratch / "in.npz"
        np.savez(inputs, **make_inputs(ports_of(model), cell))
        reference = self.reference(model, inputs, threads)
        workers, loads = {}, {}
        for name in ["tenon", *self.peers(cell)]:
            worker = Worker(name, artifact if name == "tenon" else model, inputs, threads, cell.pages)
            try:
                loads[name] = worker.ask("load")
                workers[name] = worker
            except RuntimeError as error:
                print(f"{cell.name}: {name} {error}")
        differences = self.check(cell, workers, reference)
        if "tenon" not in workers:
            sys.exit(f"{cell.name}: Tenon has no result that counts")
        times, bench = self.rounds(workers)
        for worker in workers.values():
            worker.close()
        warm = {name: statistics.median(x) * 1e-3 for name, x in times.items()}
        return {"cell": cell.name, "threads": threads, "figure": cell.figure, "pages": cell.pages, "times_ms": times,
                "differences": differences, "compile_s": compile_s, "flops": bench["flops"], "bytes": bench["bytes"],
                "cpu_form": bench["cpu"],
                "load_s": {name: max(loads[name]["seconds"] - warm[name], 0) for name in times},
                "rss_bytes": {name: loads[name]["rss"] for name in times}}


def versions():
    import onnxruntime
    found = {"onnxruntime": onnxruntime.__version__}
    for name in ("openvino", "torch"):
        if importlib.util.find_spec(name):
            found[name] = importlib.import_module(name).__version__
    return found


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tenon")
    ap.add_argument("--machine", required=True, help="the program machine-peak")
    ap.add_argument("--models", required=True, help="folder of model folders")
    ap.add_argument("--cells", nargs="*", default=[""], help="parts of cells' names (default: all)")
    ap.add_argument("--without", nargs="*", default=[], help="peers to leave out")
    ap.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    ap.add_argument("--rounds", type=int, default=15)
    ap.add_argument("--seconds", type=float, default=0.4, help="of each runtime in a round")
    ap.add_argument("--out", default="bench-result", help="folder for the results")
    ap.add_argument("--scratch", help="folder that keeps the artifacts (a temporary one)")
    ap.add_argument("--compile-only", action="store_true", help="fill --scratch and measure nothing")
    return ap.parse_args()


def main():
    args = arguments()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    cells = [cell for name, cell in CELLS.items() if any(part in name for part in args.cells)]
    if not cells:
        sys.exit(f"no such cell; there are {', '.join(CELLS)}")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(args, args.scratch or scratch)
        if args.compile_only:
            return bench.compile_all(cells)
        measure(args, cells, bench, out)


def measure(args, cells, bench, out):
    machine = {t: measure_machine(args.machine, t) for t in args.threads}
    rows = []
    for cell in cells:
        for threads in args.threads:
            if row := bench.row(cell, threads):
                rows.append(report.summarise(row, machine[threads], cell.how))
                print(report.line(row), flush=True)
    machine = {t: better(machine[t], measure_machine(args.machine, t)) for t in args.threads}
    for row in rows:
        report.summarise(row, machine[row["threads"]], CELLS[row["cell"]].how)
    result = {"versions": versions(), "machine": machine, "cpus": os.cpu_count(), "system": platform.platform(),
              "rounds": args.rounds, "seconds": args.seconds, "rows": rows}
    if why := report.write(result, out):
        print(why)
    print(f"written: {out}/result.json, result.md" + ("" if why else ", result.png"))


if __name__ == "__main__":
    main()
