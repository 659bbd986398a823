#!/usr/bin/env python3
"""Cases from the field, when ../shared/cases is there: cases.py TENON [--jobs N] [--only NAME...] [--list FILE]

right-answers/ holds valid graphs with their right outputs, invalid.tar.gz files that must be refused (and unusual
ones that must work). Each is compiled in an empty folder of its own and, where there are outputs, run and compared.
A case that needs an operator outside what Tenon implements so far is listed in cases.skip, which may only shrink: a
skipped case that passes is a failure.
"""
import argparse
import concurrent.futures
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from models import SHARED

CRASHED = {-4, -6, -7, -8, -11, 132, 134, 135, 136, 139}
RIGHT, INVALID = "right-answers", "invalid"


def compare(want, got, rtol, atol):
    for name in want:
        if name not in got:
            return f"output '{name}' is missing"
        w, g = want[name], got[name]
        if w.shape != g.shape or w.dtype != g.dtype:
            return f"output '{name}' is {g.dtype}{list(g.shape)}, expected {w.dtype}{list(w.shape)}"
        if w.dtype.kind in "biuSV":
            same = w == g
        else:
            a, b = g.astype(np.float64), w.astype(np.float64)
            with np.errstate(invalid="ignore"):
                same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= atol + rtol * np.abs(b))
        if not np.all(same):
            worst = np.argmax(~np.atleast_1d(same).ravel())
            return f"output '{name}': element {worst} is {g.ravel()[worst]}, expected {w.ravel()[worst]}"
    return None


def attempt(command, timeout, folder):
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, cwd=folder, stdin=subprocess.DEVNULL)
        return done.returncode, done.stderr.decode(errors="replace"), done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "timeout", "", ""


def check(tenon, kind, folder):
    """None when the case passes, else what is wrong."""
    case = json.loads((folder / "case.json").read_text())
    if kind == RIGHT:
        refuse, mention = case["refuse"], []
        tolerance = (case["tolerance"]["rtol"], case["tolerance"]["atol"])
    else:
        refuse = {"ok": "no", "error": "allowed" if case.get("lenient") else "required"}[case["expect"]]
        mention, tolerance = case.get("mention", []), (1e-5, 1e-5)
    # A cold cache on a busy machine is no hang.
    timeout = max(300 if kind == RIGHT else 60, case.get("timeout_s", 60))
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        out = work / "artifact"
        code, err, stdout = attempt([tenon, "compile", str(folder / "model.onnx"), "-o", str(out)], timeout, work)
        if code == "timeout":
            return f"compiling took more than {timeout} s"
        if code in CRASHED:
            return f"the compiler crashed ({code}): {err[-400:]}"
        if code == 0:
            if refuse == "required":
                return "was accepted, must be refused"
            if not (folder / "outputs.npz").exists():
                return None
            code, err, _ = attempt([str(out), "--run", f"--inputs={folder / 'inputs.npz'}", f"--outputs={work / 'got.npz'}"], 60, work)
            if code != 0:
                clear = refuse == "allowed" and code not in CRASHED and err.strip()
                return None if clear else f"running failed ({code}): {err.strip()[-400:]}"
            return compare(dict(np.load(folder / "outputs.npz")), dict(np.load(work / "got.npz")), *tolerance)
        if refuse == "no":
            return f"was refused: {err.strip()[-400:]}"
        if "error:" not in err:
            return f"no clear error: {err.strip()[-300:]!r}"
        left = [p.name for p in work.iterdir()]
        if left:
            return f"left behind: {left}"
        if absent := case.get("absent"):
            if Path(absent).exists() or (work / absent).exists():
                return f"{absent} appeared"
        low = err.lower()
        for alternatives in mention:
            if not any(m.lower() in low for m in alternatives):
                return f"the message mentions none of {alternatives}: {err.strip()[-300:]}"
        return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("tenon")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--only", nargs="*", default=[])
    ap.add_argument("--kind", choices=[RIGHT, INVALID])
    ap.add_argument("--list", help="write the names of the cases that fail")
    args = ap.parse_args()
    tenon = str(Path(args.tenon).resolve())
    base = SHARED / "cases"
    if not base.exists():
        print("no ../shared/cases here: nothing to check\n0 passed, 0 failed, 1 skipped")
        return
    skipped = set((Path(__file__).parent / "cases.skip").read_text().split("\n")) - {""}
    skipped = {s.split("#")[0].strip() for s in skipped}
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(base / "invalid.tar.gz") as tar:
            tar.extractall(unpacked)
        folders = [(RIGHT, f) for f in sorted((base / RIGHT).iterdir()) if f.is_dir()]
        folders += [(INVALID, f) for f in sorted((Path(unpacked) / INVALID).iterdir()) if (f / "case.json").exists()]
        if args.only:
            folders = [(k, f) for k, f in folders if f.name in args.only]
        if args.kind:
            folders = [(k, f) for k, f in folders if k == args.kind]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(lambda kf: check(tenon, *kf), folders))
    failed, passed, skips = [], 0, 0
    for (kind, folder), problem in zip(folders, results):
        name = f"{kind}/{folder.name}"
        if name in skipped:
            skips += problem is not None
            passed += problem is None
            if problem is None:
                problem = "passes now: take it out of cases.skip"
            else:
                continue
        if problem:
            failed.append(name)
            print(f"FAIL {name}: {problem}")
        else:
            passed += 1
    if args.list:
        Path(args.list).write_text("".join(f"{n}\n" for n in failed))
    print(f"{passed} passed, {len(failed)} failed, {skips} skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
