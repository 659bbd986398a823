"""Compiling, running and comparing whole models; shared by the end-to-end tests."""
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = ROOT.parent / "shared"


def part(key, outputs):
    """What a reference key stands for: a whole output, a slice `logits[0,-1,:]`, `argmax(x)` or `stats(x)`."""
    if m := re.fullmatch(r"(argmax|margin|stats)\((.*)\)", key):
        a = outputs[m[2]]
        if m[1] == "argmax":
            return a.argmax(-1)
        if m[1] == "stats":
            a = a.astype(np.float64)
            return np.array([a.min(), a.max(), a.mean(), np.sqrt((a * a).mean())])
        top = np.partition(a, -2, axis=-1)
        return top[..., -1] - top[..., -2]
    if m := re.fullmatch(r"(.*)\[([-0-9:,. ]*)\]", key):
        def one(p):
            if p == "...":
                return Ellipsis
            ends = [int(x) if x else None for x in p.split(":")]
            return ends[0] if len(ends) == 1 else slice(*ends)
        return outputs[m[1]][tuple(one(p.strip()) for p in m[2].split(","))]
    return outputs[key]


def differences(want, got, atol, rtol):
    """Messages about every reference key that is missing, has another shape or type, or is out of tolerance;
    and the largest absolute difference."""
    wrong, largest = [], 0.0
    for key in want:
        if key.startswith("margin("):
            continue
        w = want[key]
        try:
            g = part(key, got)
        except (KeyError, IndexError) as e:
            wrong.append(f"{key}: not there ({e})")
            continue
        if g.shape != w.shape:
            wrong.append(f"{key}: shape {g.shape}, expected {w.shape}")
            continue
        if key.startswith("argmax("):
            bad = g != w
            if (margin := key.replace("argmax", "margin")) in want:
                bad &= want[margin] > 2 * atol
            if bad.any():
                wrong.append(f"{key}: {bad.sum()} of {w.size} differ")
            continue
        w, g = w.astype(np.float64), g.astype(np.float64)
        same = (w == g) | (np.isnan(w) & np.isnan(g))
        with np.errstate(invalid="ignore"):
            d = np.where(same, 0, np.abs(w - g))
            close = same | (d <= atol + rtol * np.abs(w))
        largest = max(largest, float(d.max(initial=0)))
        if not close.all():
            wrong.append(f"{key}: {(~close).sum()} of {w.size} elements differ, by {d.max():.3g} at most")
    return wrong, largest


def compile_model(tenon, model, out, *flags):
    """Compiles and returns the seconds it took; raises with the compiler's message."""
    start = time.perf_counter()
    done = subprocess.run([tenon, "compile", str(model), "-o", str(out), *flags], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tenon compile {model}: exit {done.returncode}\n{done.stderr}")
    return time.perf_counter() - start


def run_artifact(artifact, inputs, outputs, *flags):
    done = subprocess.run([str(artifact), "--run", f"--inputs={inputs}", f"--outputs={outputs}", *flags],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{artifact} --run: exit {done.returncode}\n{done.stderr}")
    return dict(np.load(outputs))


def printed_bytes(stderr):
    """Of the line that --run prints before it runs."""
    value, unit = re.search(r"peak memory: ([\d.]+) ([kKMG]?)B", stderr).groups()
    return float(value) * {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}[unit]


def run_stderr(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}\n{done.stderr}")
    return done.stderr


def peak_memory(*command):
    """The most memory that a command had in bytes, measured by a parent that has no other children."""
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, check=True)
    return int(done.stdout)


class Report:
    """Prints a line for each thing that is tested, with what is wrong with it, and counts those."""

    def __init__(self):
        self.failed = 0

    def add(self, what, problems):
        self.failed += bool(problems)
        print("\n     ".join([f"{'FAIL' if problems else 'ok  '} {what}", *map(str, problems)]), flush=True)

    def end(self):
        print(f"{self.failed} failed")
        sys.exit(self.failed != 0)
